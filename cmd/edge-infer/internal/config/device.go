package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// AllDevices is the value of Engine.GPU that selects every GPU.
const AllDevices = "all"

// GPUs returns the numbers in a valid Engine.GPU, at least one. If all is true, numbers is empty.
func (e *Engine) GPUs() (numbers []int, all bool) {
	numbers, all, _ = parseDevices(e.GPU)
	return numbers, all
}

// FirstGPU returns the GPU for commands that use a single one.
func (e *Engine) FirstGPU() int {
	if numbers, _ := e.GPUs(); len(numbers) > 0 {
		return numbers[0]
	}
	return 0
}

// OneDevice returns a UsageError if several GPUs are configured for a command that uses one.
func (e *Engine) OneDevice(command string) error {
	if numbers, all := e.GPUs(); all || len(numbers) > 1 {
		return Usagef("engine.gpu %q: %s uses one GPU, name it as in --gpu 0; run spreads its cameras over several", e.GPU, command)
	}
	return nil
}

func parseDevices(text string) (numbers []int, all bool, err error) {
	if strings.TrimSpace(text) == AllDevices {
		return nil, true, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 || n > 1024 {
			return nil, false, errors.New("must be a GPU number of 0 or more, several separated by commas, or all")
		}
		if slices.Contains(numbers, n) {
			return nil, false, errors.New("names a GPU twice")
		}
		numbers = append(numbers, n)
	}
	return numbers, false, nil
}
