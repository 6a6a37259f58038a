package cuda

import (
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// NVML is what NVIDIA's management library says. JetPack 5 has none, and on Orin most values are missing.
type NVML struct {
	DriverVersion string       `json:"driver_version,omitempty"` // of the kernel module, as nvidia-smi shows it
	Devices       []NVMLDevice `json:"devices,omitempty"`
	Reason        string       `json:"reason,omitempty"` // why there is nothing
}

// NVMLDevice is one GPU at one moment. A value that the library does not give is -1.
type NVMLDevice struct {
	Name        string  `json:"name"`
	UUID        string  `json:"uuid"`
	MemoryUsed  int64   `json:"memory_used"` // bytes
	MemoryTotal int64   `json:"memory_total"`
	Utilization float64 `json:"utilization"` // percent
	Temperature float64 `json:"temperature"` // degrees Celsius
	Power       float64 `json:"power"`       // watts
}

// nvml opens the library, reads and closes it again. Calling anything of go-nvml after a failed Init, or a function that the library at
// hand lacks, ends the process: hence the one gate and the look-up before each call.
func (p Prober) nvml() NVML {
	options := []nvml.LibraryOption{}
	if p.NVML != "" {
		options = append(options, nvml.WithLibraryPath(p.NVML))
	}
	library := nvml.New(options...)
	switch code := library.Init(); code {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return NVML{Reason: "libnvidia-ml.so.1 not found"}
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return NVML{Reason: "the NVIDIA kernel module is not loaded"}
	default:
		return NVML{Reason: "NVML does not start: error " + strconv.Itoa(int(code))}
	}
	defer library.Shutdown()
	has := func(symbol string) bool { return library.Extensions().LookupSymbol(symbol) == nil }

	var n NVML
	if has("nvmlSystemGetDriverVersion") {
		if version, code := library.SystemGetDriverVersion(); code == nvml.SUCCESS {
			n.DriverVersion = version
		}
	}
	if !has("nvmlDeviceGetCount_v2") || !has("nvmlDeviceGetHandleByIndex_v2") {
		n.Reason = "NVML cannot list GPUs"
		return n
	}
	count, code := library.DeviceGetCount()
	if code != nvml.SUCCESS {
		n.Reason = "NVML cannot list GPUs: error " + strconv.Itoa(int(code))
		return n
	}
	for index := range count {
		device, code := library.DeviceGetHandleByIndex(index)
		if code != nvml.SUCCESS {
			continue // another user's GPU
		}
		d := NVMLDevice{MemoryUsed: -1, MemoryTotal: -1, Utilization: -1, Temperature: -1, Power: -1}
		if has("nvmlDeviceGetName") {
			if name, code := device.GetName(); code == nvml.SUCCESS {
				d.Name = name
			}
		}
		if has("nvmlDeviceGetUUID") {
			if id, code := device.GetUUID(); code == nvml.SUCCESS {
				d.UUID = id
			}
		}
		if has("nvmlDeviceGetMemoryInfo") {
			if memory, code := device.GetMemoryInfo(); code == nvml.SUCCESS {
				d.MemoryUsed, d.MemoryTotal = int64(memory.Used), int64(memory.Total)
			}
		}
		if has("nvmlDeviceGetUtilizationRates") {
			if rates, code := device.GetUtilizationRates(); code == nvml.SUCCESS {
				d.Utilization = float64(rates.Gpu)
			}
		}
		if has("nvmlDeviceGetTemperature") {
			if celsius, code := device.GetTemperature(nvml.TEMPERATURE_GPU); code == nvml.SUCCESS {
				d.Temperature = float64(celsius)
			}
		}
		if has("nvmlDeviceGetPowerUsage") {
			if milliwatts, code := device.GetPowerUsage(); code == nvml.SUCCESS {
				d.Power = float64(milliwatts) / 1000
			}
		}
		n.Devices = append(n.Devices, d)
	}
	return n
}
