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
)

// output runs a program and returns its standard output; the error has the last line of its standard error.
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

// benchResult holds the fields of a result of edge-infer bench --json that are used here. Latencies are in milliseconds.
type benchResult struct {
	What        string   `json:"what"`
	Batch       int      `json:"batch"`
	Frames      uint64   `json:"frames"`
	Late        uint64   `json:"late"`
	FPS         float64  `json:"fps"`
	P50         float64  `json:"latency_p50_ms"`
	P99         float64  `json:"latency_p99_ms"`
	P999        float64  `json:"latency_p999_ms"`
	CPU         float64  `json:"cpu_us_per_frame"`
	Allocations float64  `json:"allocations_per_frame"`
	Fairness    *float64 `json:"fairness"`
}

// bench runs edge-infer bench and returns its results.
func (o *options) bench(ctx context.Context, arguments ...string) ([]benchResult, error) {
	data, err := output(ctx, nil, o.program, append([]string{"bench", "--json"}, arguments...)...)
	if err != nil {
		return nil, err
	}
	var report struct {
		Results []benchResult `json:"results"`
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if len(report.Results) == 0 {
		return nil, errors.New("bench: no results")
	}
	return report.Results, nil
}

// baselineResult is the JSON output of a baseline program.
type baselineResult struct {
	Rate     float64 `json:"frames_per_second"`
	CPU      float64 `json:"cpu_us_per_frame"`
	P50      float64 `json:"latency_us_p50"`
	P99      float64 `json:"latency_us_p99"`
	P999     float64 `json:"latency_us_p999"`
	Network  float64 `json:"inference_us_p50"`
	PacedCPU float64 `json:"paced_cpu_us_per_frame"`
}

func runBaseline(ctx context.Context, environment []string, program string, arguments ...string) (baselineResult, error) {
	var f baselineResult
	data, err := output(ctx, environment, program, arguments...)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("%s: %w", program, err)
	}
	if f.Rate <= 0 {
		return f, fmt.Errorf("%s processed no frame", program)
	}
	return f, nil
}

// alternate runs a and b once per round, b first in every second round: ABBA.
func alternate(ctx context.Context, rounds int, a, b func() error) error {
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

// ratios returns a/b by round.
func ratios(a, b figures) figures {
	r := make(figures, min(len(a), len(b)))
	for i := range r {
		r[i] = a[i] / b[i]
	}
	return r
}

// differences returns a-b by round.
func differences(a, b figures) figures {
	r := make(figures, min(len(a), len(b)))
	for i := range r {
		r[i] = a[i] - b[i]
	}
	return r
}
