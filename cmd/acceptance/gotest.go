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

// counts is the number of runs of each benchmark.
const counts = 5

// goBench runs Go benchmarks several times and returns their figures by name, without the -GOMAXPROCS suffix, and unit.
func goBench(ctx context.Context, pkg, pattern, time string) (map[string]map[string]figures, error) {
	command := exec.CommandContext(ctx, "go", "test", pkg, "-run", "^$", "-bench", pattern, "-benchmem", "-benchtime", time, "-count",
		strconv.Itoa(counts))
	var stderr bytes.Buffer
	command.Stderr = &stderr
	data, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go test %s -bench %s: %w: %s", pkg, pattern, err, bytes.TrimSpace(append(data, stderr.Bytes()...)))
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

// goTest runs a Go test and returns its log and whether it passed.
func goTest(ctx context.Context, environment []string, pkg, pattern string) (log string, passed bool, err error) {
	command := exec.CommandContext(ctx, "go", "test", pkg, "-count", "1", "-run", pattern, "-v")
	command.Env = append(os.Environ(), environment...)
	data, err := command.CombinedOutput()
	if err != nil && !bytes.Contains(data, []byte("--- FAIL")) {
		return "", false, fmt.Errorf("go test %s -run %s: %w: %s", pkg, pattern, err, bytes.TrimSpace(data))
	}
	return string(data), err == nil, nil
}
