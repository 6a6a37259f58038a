package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench/result"
)

// output runs a program and gives what it printed; the error has the end of what it complained of.
func output(ctx context.Context, environment []string, program string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.WaitDelay = 5 * time.Second
	command.Env = append(os.Environ(), environment...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	data, err := command.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return data, fmt.Errorf("%s %s: %w: %s", program, first(arguments), err, lines[len(lines)-1])
	}
	return data, nil
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// bench runs edge-infer bench and gives its results.
func (o *options) bench(ctx context.Context, arguments ...string) ([]result.Result, error) {
	data, err := output(ctx, nil, o.program, append([]string{"bench", "--json"}, arguments...)...)
	if err != nil {
		return nil, err
	}
	r, err := result.Parse(data)
	if err != nil {
		return nil, err
	}
	return r.Results, nil
}

// floored is what a floor program prints.
type floored struct {
	Rate     float64 `json:"frames_per_second"`
	CPU      float64 `json:"cpu_us_per_frame"`
	P50      float64 `json:"latency_us_p50"`
	P99      float64 `json:"latency_us_p99"`
	P999     float64 `json:"latency_us_p999"`
	Network  float64 `json:"inference_us_p50"`
	PacedCPU float64 `json:"paced_cpu_us_per_frame"`
}

func floorOf(ctx context.Context, environment []string, program string, arguments ...string) (floored, error) {
	var f floored
	data, err := output(ctx, environment, program, arguments...)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("%s: %w", program, err)
	}
	if f.Rate <= 0 {
		return f, fmt.Errorf("%s did nothing", program)
	}
	return f, nil
}

// turns runs both in turns, the first one first in every other round: ABBA.
func turns(ctx context.Context, rounds int, a, b func() error) error {
	for round := range rounds {
		order := []func() error{a, b}
		if round%2 == 1 {
			order[0], order[1] = b, a
		}
		for _, one := range order {
			if err := errors.Join(ctx.Err(), one()); err != nil {
				return err
			}
		}
	}
	return nil
}

// ratios divides round by round.
func ratios(a, b figures) figures {
	r := make(figures, min(len(a), len(b)))
	for i := range r {
		r[i] = a[i] / b[i]
	}
	return r
}

// differences subtracts round by round.
func differences(a, b figures) figures {
	r := make(figures, min(len(a), len(b)))
	for i := range r {
		r[i] = a[i] - b[i]
	}
	return r
}

// watchTime gives the seconds from now until it is asked.
func watchTime() func() float64 {
	begun := time.Now()
	return func() float64 { return time.Since(begun).Seconds() }
}
