package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// counts is how often a benchmark runs.
const counts = 5

// goBench runs Go benchmarks several times and gives their figures by name and unit. The name is without the processors behind it.
func goBench(ctx context.Context, room, pattern, time string) (map[string]map[string]figures, error) {
	command := exec.CommandContext(ctx, "go", "test", room, "-run", "^$", "-bench", pattern, "-benchmem", "-benchtime", time, "-count",
		strconv.Itoa(counts))
	var stderr bytes.Buffer
	command.Stderr = &stderr
	data, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go test %s -bench %s: %w: %s", room, pattern, err, bytes.TrimSpace(append(data, stderr.Bytes()...)))
	}
	return parseBench(data), nil
}

func parseBench(data []byte) map[string]map[string]figures {
	found := map[string]map[string]figures{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(fields[0], "Benchmark")
		if at := strings.LastIndexByte(name, '-'); at > 0 {
			if _, err := strconv.Atoi(name[at+1:]); err == nil {
				name = name[:at]
			}
		}
		if found[name] == nil {
			found[name] = map[string]figures{}
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				found[name][fields[i+1]] = append(found[name][fields[i+1]], v)
			}
		}
	}
	return found
}

// goTest runs a Go test and gives what it logs.
func goTest(ctx context.Context, environment []string, room, pattern string) (log string, passed bool, err error) {
	command := exec.CommandContext(ctx, "go", "test", room, "-count", "1", "-run", pattern, "-v")
	command.Env = append(os.Environ(), environment...)
	data, err := command.CombinedOutput()
	if err != nil && !bytes.Contains(data, []byte("--- FAIL")) {
		return "", false, fmt.Errorf("go test %s -run %s: %w: %s", room, pattern, err, bytes.TrimSpace(data))
	}
	return string(data), err == nil, nil
}
