package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
)

// rtspRun measures edge-infer with many RTSP cameras, which a server in this process plays from a file, from the time at which an image was
// taken to its message at a subscriber.
type rtspRun struct {
	program, model, engine, video, parameters, json string
	settle, duration                                time.Duration
}

// The targets: milliseconds from the camera's time to the message at the 95th percentile, the share of images without a message or with one
// after rtspLate, and connections of each camera.
const (
	rtspP95    = 60.0
	rtspMissed = 0.001
	rtspLate   = 100.0 // milliseconds
)

// runRTSP is the command rtsp.
func runRTSP(ctx context.Context, args []string) error {
	o := rtspRun{}
	flags := flag.NewFlagSet("rtsp", flag.ContinueOnError)
	flags.StringVar(&o.program, "program", "", "edge-infer")
	flags.StringVar(&o.model, "model", "", "model of the program")
	flags.StringVar(&o.engine, "engine", "auto", "engine of the program")
	flags.StringVar(&o.video, "video", "", "MPEG-TS file with H.264 or H.265")
	flags.StringVar(&o.parameters, "parameters", "", "of the cameras' addresses, such as #decoder=software")
	counts := flags.String("cameras", "16", "numbers of cameras, one run each")
	flags.DurationVar(&o.settle, "settle", 15*time.Second, "time between the first message and the measurement")
	flags.DurationVar(&o.duration, "duration", 20*time.Second, "of each measurement")
	flags.StringVar(&o.json, "json", "", "write the verdicts to a file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.program == "" || o.video == "" {
		return usage{}
	}
	program, err := filepath.Abs(o.program)
	if err != nil {
		return err
	}
	o.program = program
	s := &report{Time: time.Now(), Before: loadAverage()}
	busy, begun := watchLoad(), time.Now()
	for text := range strings.SplitSeq(*counts, ",") {
		cameras, err := strconv.Atoi(text)
		if err != nil || cameras < 1 {
			return fmt.Errorf("cameras %q: must be a positive number", text)
		}
		if err := o.run(ctx, s, cameras); err != nil {
			return fmt.Errorf("%d cameras: %w", cameras, err)
		}
	}
	s.Busy, s.After, s.Took = busy(), loadAverage(), time.Since(begun).Seconds()
	if err := s.save(o.json); err != nil {
		return err
	}
	return s.print(os.Stdout)
}

func (o *rtspRun) run(ctx context.Context, s *report, cameras int) error {
	server := &rtsptest.Server{Files: []string{o.video}, Paths: cameras}
	if err := server.Start(); err != nil {
		return err
	}
	defer server.Close()
	broker, end, err := openBroker()
	if err != nil {
		return err
	}
	defer end()
	arrivals, err := subscribe(broker)
	if err != nil {
		return err
	}
	defer arrivals.client.Disconnect(0)
	page, err := freeAddress()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "acceptance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	arguments := []string{"run", "--model", o.model, "--engine", o.engine, "--mqtt", broker, "--web", page}
	for i := range cameras {
		arguments = append(arguments, "--camera", fmt.Sprintf("c%d=%s%s", i, server.URL(i), o.parameters))
	}
	var stderr tail
	command := exec.Command(o.program, arguments...)
	command.Env = append(os.Environ(), "XDG_STATE_HOME="+dir)
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		return err
	}
	defer func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(30*time.Second, func() { _ = command.Process.Kill() })
		defer timer.Stop()
		_ = command.Wait()
	}()
	for begun := time.Now(); arrivals.count() < cameras; {
		if time.Since(begun) > 2*time.Minute {
			return fmt.Errorf("%d messages after two minutes: %s", arrivals.count(), stderr.last())
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	if err := sleep(ctx, o.settle); err != nil {
		return err
	}
	return o.measure(ctx, s, server, arrivals, command.Process.Pid, page, cameras)
}

// measure adds the figures of a running program to the report.
func (o *rtspRun) measure(ctx context.Context, s *report, server *rtsptest.Server, arrivals *arrivals, pid int, page string, cameras int) error {
	sent := func() (units uint64, connections int) {
		for i := range cameras {
			stats := server.Stats(i)
			units, connections = units+stats.Units, max(connections, stats.Connections)
		}
		return units, connections
	}
	cpu, err := processTime(pid)
	if err != nil {
		return err
	}
	before, _ := sent()
	arrivals.restart()
	begun := time.Now()
	if err := sleep(ctx, o.duration); err != nil {
		return err
	}
	took := time.Since(begun).Seconds()
	latencies := arrivals.restart()
	after, connections := sent()
	used, err := processTime(pid)
	if err != nil {
		return err
	}
	if len(latencies) == 0 {
		return errors.New("no message")
	}
	slices.Sort(latencies)
	at := func(share float64) figures {
		return figures{latencies[min(len(latencies)-1, int(share*float64(len(latencies))))]}
	}
	late, _ := slices.BinarySearch(latencies, rtspLate)
	images := float64(after - before)
	missed := max(0, images-float64(late)) / images
	name := fmt.Sprintf("%d cameras: ", cameras)
	note := fmt.Sprintf("%d of %.0f images", len(latencies), images)
	s.atMost("rtsp", name+"camera time to message, p95", at(.95), rtspP95, 0, "ms", note)
	s.info("rtsp", name+"p50", at(.5), "ms", "")
	s.info("rtsp", name+"p99", at(.99), "ms", "")
	s.atMost("rtsp", name+"images without a message within 100 ms", figures{missed}, rtspMissed, 0, "share", note)
	s.atMost("rtsp", name+"connections of a camera", figures{float64(connections)}, 1, 0, "", "the most of all cameras")
	s.info("rtsp", name+"cores", figures{(used - cpu) / took}, "", "of the program")
	return describeCapture(s, name, page)
}

// describeCapture adds what the program reports of its cameras.
func describeCapture(s *report, name, page string) error {
	answer, err := http.Get("http://" + page + "/api/status")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var status struct {
		Cameras []struct {
			Capture struct {
				Decoder    string `json:"decoder"`
				CameraTime bool   `json:"camera_time"`
				Captured   int64  `json:"captured"`
				Copied     int64  `json:"copied_bytes"`
			} `json:"capture"`
		} `json:"cameras"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	captured, copied, timed := int64(0), int64(0), 0
	var decoders []string
	for _, c := range status.Cameras {
		captured, copied = captured+c.Capture.Captured, copied+c.Capture.Copied
		decoders = append(decoders, c.Capture.Decoder)
		if c.Capture.CameraTime {
			timed++
		}
	}
	slices.Sort(decoders)
	s.pass("rtsp", name+"have the camera's time", timed == len(status.Cameras), fmt.Sprintf("%d of %d", timed, len(status.Cameras)))
	s.info("rtsp", name+"bytes copied to the host per image", figures{float64(copied) / float64(max(1, captured))}, "",
		strings.Join(slices.Compact(decoders), ", "))
	return nil
}

// arrivals collects the latencies of messages in milliseconds.
type arrivals struct {
	client    mqtt.Client
	mu        sync.Mutex
	latencies []float64
}

// subscribe connects to a broker and receives the detections of all cameras.
func subscribe(broker string) (*arrivals, error) {
	a := &arrivals{}
	a.client = mqtt.NewClient(mqtt.NewClientOptions().AddBroker(broker).SetOrderMatters(false))
	connected := a.client.Connect()
	connected.Wait()
	if err := connected.Error(); err != nil {
		return nil, err
	}
	subscribed := a.client.Subscribe("edge-infer/+/+/detections", 0, a.receive)
	subscribed.Wait()
	return a, subscribed.Error()
}

func (a *arrivals) receive(_ mqtt.Client, message mqtt.Message) {
	now := time.Now()
	var frame struct {
		Time time.Time `json:"time"`
	}
	if json.Unmarshal(message.Payload(), &frame) != nil {
		return // counts as missing
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.latencies = append(a.latencies, now.Sub(frame.Time).Seconds()*1e3)
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.latencies)
}

// restart returns the latencies since the last call.
func (a *arrivals) restart() []float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.latencies
	a.latencies = nil
	return seen
}

// processTime returns the CPU time of a process in seconds.
func processTime(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // the name may contain spaces
	const user, system, ticks = 11, 12, 100                                             // proc(5), from the state on; ticks in a second
	total := 0.0
	for _, field := range []int{user, system} {
		value, err := strconv.ParseFloat(fields[field], 64)
		if err != nil {
			return 0, err
		}
		total += value / ticks
	}
	return total, nil
}
