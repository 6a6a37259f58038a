package cuda

import (
	"errors"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// NVML is the report of NVIDIA's management library. JetPack 5 has none, and on Orin most values are missing.
type NVML struct {
	DriverVersion string       `json:"driver_version,omitempty"` // of the kernel module, as nvidia-smi shows it
	Devices       []NVMLDevice `json:"devices,omitempty"`
	Reason        string       `json:"reason,omitempty"` // why NVML is not available
}

// NVMLDevice is the current state of one GPU. Unavailable values are -1.
type NVMLDevice struct {
	Name        string  `json:"name"`
	UUID        string  `json:"uuid"`
	MemoryUsed  int64   `json:"memory_used"` // bytes
	MemoryTotal int64   `json:"memory_total"`
	Utilization float64 `json:"utilization"` // percent
	Decoder     float64 `json:"decoder"`     // utilization of the video decoders in percent
	Temperature float64 `json:"temperature"` // degrees Celsius
	Limit       float64 `json:"limit"`       // slow-down temperature, degrees Celsius
	Power       float64 `json:"power"`       // watts
	Hertz       int64   `json:"hertz"`       // clock of the multiprocessors
	MaxHertz    int64   `json:"max_hertz"`
	// Throttled lists the current throttle reasons: power cap, heat, power brake.
	Throttled []string `json:"throttled,omitempty"`
}

// Management is the opened NVML library. It must not be used by two goroutines at once.
type Management struct{ library nvml.Interface }

// OpenManagement opens the library at path, or libnvidia-ml.so.1 if path is empty. The caller must close the result.
func OpenManagement(path string) (*Management, error) {
	options := []nvml.LibraryOption{}
	if path != "" {
		options = append(options, nvml.WithLibraryPath(path))
	}
	library := nvml.New(options...)
	switch code := library.Init(); code {
	case nvml.SUCCESS:
		return &Management{library}, nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, errors.New("libnvidia-ml.so.1 not found")
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, errors.New("the NVIDIA kernel module is not loaded")
	default:
		// Any other call of go-nvml would now end the process, so no Management is returned.
		return nil, errors.New("NVML does not start: error " + strconv.Itoa(int(code)))
	}
}

// Close closes the library. It is idempotent.
func (m *Management) Close() {
	if m.library != nil {
		m.library.Shutdown()
		m.library = nil
	}
}

// nvml opens the library, reads and closes it again.
func (p Prober) nvml() NVML {
	management, err := OpenManagement(p.NVML)
	if err != nil {
		return NVML{Reason: err.Error()}
	}
	defer management.Close()
	return management.Read()
}

// throttles names the throttle reasons.
var throttles = [...]struct {
	reason uint64
	name   string
}{
	{nvml.ClocksThrottleReasonSwPowerCap, "power cap"},
	{nvml.ClocksThrottleReasonSwThermalSlowdown | nvml.ClocksThrottleReasonHwThermalSlowdown, "heat"},
	{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, "power brake"},
}

// available calls an NVML function if the library has its symbol: calling a missing function would end the process.
func available[T any](m *Management, symbol string, call func() (T, nvml.Return)) (T, nvml.Return) {
	if m.library.Extensions().LookupSymbol(symbol) != nil {
		var none T
		return none, nvml.ERROR_FUNCTION_NOT_FOUND
	}
	return call()
}

// Read returns the state of every GPU.
func (m *Management) Read() NVML {
	var n NVML
	n.DriverVersion, _ = available(m, "nvmlSystemGetDriverVersion", m.library.SystemGetDriverVersion)
	count, code := available(m, "nvmlDeviceGetCount_v2", m.library.DeviceGetCount)
	if code != nvml.SUCCESS {
		n.Reason = "NVML cannot list GPUs: error " + strconv.Itoa(int(code))
		return n
	}
	for index := range count {
		handle := func() (nvml.Device, nvml.Return) { return m.library.DeviceGetHandleByIndex(index) }
		device, code := available(m, "nvmlDeviceGetHandleByIndex_v2", handle)
		if code == nvml.SUCCESS { // fails for GPUs of other users
			n.Devices = append(n.Devices, m.device(device))
		}
	}
	return n
}

func (m *Management) device(device nvml.Device) NVMLDevice {
	d := NVMLDevice{
		MemoryUsed: -1, MemoryTotal: -1, Utilization: -1, Decoder: -1, Temperature: -1, Limit: -1, Power: -1, Hertz: -1, MaxHertz: -1,
	}
	d.Name, _ = available(m, "nvmlDeviceGetName", device.GetName)
	d.UUID, _ = available(m, "nvmlDeviceGetUUID", device.GetUUID)
	if memory, code := available(m, "nvmlDeviceGetMemoryInfo", device.GetMemoryInfo); code == nvml.SUCCESS {
		d.MemoryUsed, d.MemoryTotal = int64(memory.Used), int64(memory.Total)
	}
	if rates, code := available(m, "nvmlDeviceGetUtilizationRates", device.GetUtilizationRates); code == nvml.SUCCESS {
		d.Utilization = float64(rates.Gpu)
	}
	decoder := func() (uint32, nvml.Return) {
		percent, _, code := device.GetDecoderUtilization()
		return percent, code
	}
	if percent, code := available(m, "nvmlDeviceGetDecoderUtilization", decoder); code == nvml.SUCCESS {
		d.Decoder = float64(percent)
	}
	temperature := func() (uint32, nvml.Return) { return device.GetTemperature(nvml.TEMPERATURE_GPU) }
	if celsius, code := available(m, "nvmlDeviceGetTemperature", temperature); code == nvml.SUCCESS {
		d.Temperature = float64(celsius)
	}
	limit := func() (uint32, nvml.Return) {
		return device.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
	}
	if celsius, code := available(m, "nvmlDeviceGetTemperatureThreshold", limit); code == nvml.SUCCESS {
		d.Limit = float64(celsius)
	}
	if milliwatts, code := available(m, "nvmlDeviceGetPowerUsage", device.GetPowerUsage); code == nvml.SUCCESS {
		d.Power = float64(milliwatts) / 1000
	}
	clock := func() (uint32, nvml.Return) { return device.GetClockInfo(nvml.CLOCK_SM) }
	if megahertz, code := available(m, "nvmlDeviceGetClockInfo", clock); code == nvml.SUCCESS {
		d.Hertz = int64(megahertz) * 1e6
	}
	highest := func() (uint32, nvml.Return) { return device.GetMaxClockInfo(nvml.CLOCK_SM) }
	if megahertz, code := available(m, "nvmlDeviceGetMaxClockInfo", highest); code == nvml.SUCCESS {
		d.MaxHertz = int64(megahertz) * 1e6
	}
	reasons, code := available(m, "nvmlDeviceGetCurrentClocksThrottleReasons", device.GetCurrentClocksThrottleReasons)
	if code == nvml.SUCCESS {
		for _, t := range throttles {
			if reasons&t.reason != 0 {
				d.Throttled = append(d.Throttled, t.name)
			}
		}
	}
	return d
}
