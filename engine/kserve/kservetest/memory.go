package kservetest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/kserve/kservepb"
)

// Memory is the shared memory of a server: POSIX shared memory, and GPU memory if the fake CUDA driver runs in this process.
type Memory struct {
	mu         sync.Mutex
	refusal    string
	regions    map[string][]byte
	registered []kserve.Registration
}

// RefuseGPU makes the server reject registrations of GPU memory with that text; empty accepts them.
func (m *Memory) RefuseGPU(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusal = text
}

// Registered returns all registrations received, rejected ones included.
func (m *Memory) Registered() []kserve.Registration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]kserve.Registration(nil), m.registered...)
}

// Open returns the names of the registered regions.
func (m *Memory) Open() (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.regions {
		names = append(names, name)
	}
	return names
}

// Forget drops all regions, as a restart of the server does.
func (m *Memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.regions = nil
}

func (m *Memory) register(r kserve.Registration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.registered = append(m.registered, r)
	var view []byte
	if r.Handle != nil {
		if m.refusal != "" {
			return kserve.Statusf(kserve.InvalidArgument, "%s", m.refusal)
		}
		view = unsafe.Slice(*(**byte)(unsafe.Pointer(&r.Handle[0])), r.Size) // the stand-in's handles are addresses
	} else {
		file, err := os.OpenFile("/dev/shm"+r.Key, os.O_RDWR, 0)
		if err != nil {
			return kserve.Statusf(kserve.InvalidArgument, "%v", err)
		}
		defer file.Close()
		if view, err = unix.Mmap(int(file.Fd()), 0, int(r.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return kserve.Statusf(kserve.Internal, "%v", err)
		}
	}
	if m.regions == nil {
		m.regions = map[string][]byte{}
	}
	m.regions[r.Name] = view
	return nil
}

func (m *Memory) unregister(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.regions, name)
}

// view is a part of a region.
func (m *Memory) view(r kserve.Region) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	region, ok := m.regions[r.Name]
	if !ok {
		return nil, kserve.Statusf(kserve.NotFound, "Unable to find shared memory region: '%s'", r.Name)
	}
	if r.Offset < 0 || r.Size < 0 || r.Offset+r.Size > int64(len(region)) {
		return nil, kserve.Statusf(kserve.InvalidArgument, "Invalid offset + byte size for shared memory region: '%s'", r.Name)
	}
	return region[r.Offset : r.Offset+r.Size], nil
}

// infer runs a request whose tensors are in regions.
func (m *Memory) infer(ctx context.Context, model *Model, r *kserve.InferRequest) (answer kserve.InferResponse, err error) {
	for i := range r.Inputs {
		if in := &r.Inputs[i]; in.Region.Name != "" {
			if in.Data, err = m.view(in.Region); err != nil {
				return answer, err
			}
		}
	}
	err = model.Infer(ctx, r, func(a *kserve.InferResponse) error {
		answer = *a
		for i := range answer.Outputs {
			out := &answer.Outputs[i]
			for k := range r.Outputs {
				if wanted := &r.Outputs[k]; wanted.Name == out.Name && wanted.Region.Name != "" {
					to, err := m.view(wanted.Region)
					if err != nil {
						return err
					}
					copy(to, out.Data)
					out.Data = nil
				}
			}
		}
		return nil
	})
	return answer, err
}

// serve serves the shared memory calls; it returns false for other requests.
func (m *Memory) serve(model *Model, w http.ResponseWriter, r *http.Request) bool {
	if method, ok := strings.CutPrefix(r.URL.Path, "/inference.GRPCInferenceService/"); ok {
		return m.serveGRPC(model, w, r, method)
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(path) == 5 && strings.HasSuffix(path[1], "sharedmemory") {
		var about struct {
			Key    string               `json:"key"`
			Size   int64                `json:"byte_size"`
			Device int                  `json:"device_id"`
			Handle struct{ B64 []byte } `json:"raw_handle"`
		}
		err := json.NewDecoder(r.Body).Decode(&about)
		switch {
		case err != nil:
		case path[4] == "register":
			err = m.register(kserve.Registration{Name: path[3], Key: about.Key, Size: about.Size, Device: about.Device, Handle: about.Handle.B64})
		default:
			m.unregister(path[3])
		}
		refuse(w, err)
		return true
	}
	if path[len(path)-1] != "infer" {
		return false
	}
	body, _ := io.ReadAll(r.Body)
	head, err := strconv.Atoi(r.Header.Get(kserve.HeaderLength))
	if err != nil {
		head = -1
	}
	var request kserve.InferRequest
	var answer kserve.InferResponse
	if err = request.UnmarshalHTTP(body, head); err == nil {
		answer, err = m.infer(r.Context(), model, &request)
	}
	if err == nil {
		if body, head, err = answer.MarshalHTTP(true); err == nil {
			w.Header().Set(kserve.HeaderLength, strconv.Itoa(head))
			_, _ = w.Write(body) // the client may be gone
			return true
		}
	}
	refuse(w, err)
	return true
}

func refuse(w http.ResponseWriter, err error) {
	if err == nil {
		return
	}
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}

func registration(message []byte, onGPU bool) (kserve.Registration, error) {
	if onGPU {
		var m kservepb.CudaSharedMemoryRegisterRequest
		err := kserve.Unmarshal(message, &m)
		return kserve.Registration{Name: m.Name, Handle: m.RawHandle, Device: int(m.DeviceId), Size: int64(m.ByteSize)}, err
	}
	var m kservepb.SystemSharedMemoryRegisterRequest
	err := kserve.Unmarshal(message, &m)
	return kserve.Registration{Name: m.Name, Key: m.Key, Size: int64(m.ByteSize)}, err
}

func (m *Memory) serveGRPC(model *Model, w http.ResponseWriter, r *http.Request, method string) bool {
	kind, what, ok := strings.Cut(method, "SharedMemory")
	if !ok && method != "ModelInfer" {
		return false
	}
	body, _ := io.ReadAll(r.Body)
	message := body[min(len(body), kserve.FrameHead):]
	answer := make([]byte, kserve.FrameHead)
	var err error
	switch {
	case what == "Register":
		var about kserve.Registration
		if about, err = registration(message, kind == "Cuda"); err == nil {
			err = m.register(about)
		}
	case what == "Unregister":
		var about kservepb.ModelRequest
		if err = kserve.Unmarshal(message, &about); err == nil {
			m.unregister(about.Name)
		}
	default:
		var request kserve.InferRequest
		var outputs kserve.InferResponse
		if err = request.Unmarshal(message); err == nil {
			outputs, err = m.infer(r.Context(), model, &request)
		}
		if err == nil {
			answer = outputs.Marshal(answer)
		}
	}
	w.Header().Set("Content-Type", "application/grpc")
	if err != nil {
		code := kserve.Internal
		if status, ok := errors.AsType[*kserve.Status](err); ok {
			code = status.Code
		}
		w.Header().Set("Grpc-Status", strconv.Itoa(int(code)))
		w.Header().Set("Grpc-Message", err.Error())
		return true
	}
	kserve.PutFrameHead(answer, len(answer)-kserve.FrameHead)
	_, _ = w.Write(answer) // the client may be gone
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	return true
}
