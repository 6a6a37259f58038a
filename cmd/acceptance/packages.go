package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// loaded is B8.
func (c *cpu) loaded(ctx context.Context, s *report) error {
	found, err := goBench(ctx, "./cmd/edge-infer/internal/bench", "LoadedTail", "1x")
	if err != nil {
		return err
	}
	f := found["LoadedTail"]
	s.atMost("B8", "p99 added by one busy goroutine per CPU", f["added-p99-us"], 500, 0, "us",
		fmt.Sprintf("%s us with GOMAXPROCS equal to the CPUs", number(f["naive-added-p99-us"].median())))
	s.atMost("B8", "ours / default GOMAXPROCS", f["ours/naive"], 1./30, 0, "ratio", "")
	return nil
}

// letterbox is B10.
func (c *cpu) letterbox(ctx context.Context, s *report) error {
	found, err := goBench(ctx, "./engine/preprocess", "AgainstOpenCV/1920x1080", "20x")
	if err != nil {
		return err
	}
	f := found["AgainstOpenCV/1920x1080"]
	s.atMost("B10", "letterbox of 1080p to 640 / OpenCV's resize, border and conversion, 1 thread", f["ratio"], 0.50, tolerance, "ratio",
		number(f["us/image"].median())+" us per image")
	return nil
}

// decode is B11.
func (c *cpu) decode(ctx context.Context, s *report) error {
	found, err := goBench(ctx, "./postprocess/head", "Decode$", "100x")
	if err != nil {
		return err
	}
	few, many := found["Decode/candidates=200"], found["Decode/candidates=3000"]
	s.atMost("B11", "decoding and NMS of 200 candidates of [1,84,8400] / reading it once in C", few["x-floor"], 2, tolerance, "ratio",
		fmt.Sprintf("the baseline takes %s us", number(few["floor-us"].median())))
	s.atMost("B11", "the same", few["us"], 70, 0, "us", "")
	s.atLeast("B11", "strided decoding in Go / ours", few["x-strided"], 10, tolerance, "")
	s.atMost("B11", "3,000 candidates", many["us"], 300, 0, "us", "")
	return nil
}

// encode is B12.
func (c *cpu) encode(ctx context.Context, s *report) error {
	found, err := goBench(ctx, "./mqtt/payload", "Detections", "2000x")
	if err != nil {
		return err
	}
	s.atLeast("B12", "encoding/json / ours, 10 boxes", found["Detections/speedup"]["x"], 4, tolerance, "")
	s.atMost("B12", "allocations of ours", found["Detections/append"]["allocs/op"], 0, 0, "", "")
	s.atMost("B12", "bytes / encoding/json's", found["Detections/speedup"]["bytes-ratio"], 0.75, tolerance, "ratio", "")
	return nil
}

// faultLine matches the log line of TestFaults for one kind of broker.
var faultLine = regexp.MustCompile(`: ([a-z ]+): ([0-9.]+) fps, hand-off p50 \S+, p99 (\S+) \(a wake alone (\S+)\), .* memory ([+-][0-9]+) KiB`)

// brokers is B13.
func (c *cpu) brokers(ctx context.Context, s *report) error {
	log, passed, err := goTest(ctx, []string{"EDGE_INFER_FAULTS=10s"}, "./mqtt", "TestFaults/^(up|flapping|black hole|refused)$")
	if err != nil {
		return err
	}
	var up float64
	for _, found := range faultLine.FindAllStringSubmatch(log, -1) {
		rate, _ := strconv.ParseFloat(found[2], 64)
		if found[1] == "up" {
			up = rate
		} else {
			s.atLeast("B13", "frames/s, "+found[1]+" / broker up", figures{rate / up}, 0.99, 0, "")
		}
		p99, err := time.ParseDuration(found[3])
		if err != nil {
			return err
		}
		s.atMost("B13", "p99 of a hand-over, "+found[1], figures{float64(p99) / 1e3}, 20, 0, "us", "a goroutine wake-up alone takes "+found[4])
		kib, _ := strconv.ParseFloat(found[5], 64)
		s.atMost("B13", "memory growth in 10 s, "+found[1], figures{kib / 1024}, 8, 0, "MiB", "")
	}
	if up == 0 {
		return errors.New("TestFaults logged no figures")
	}
	s.pass("B13", "every message is delivered, counted as dropped, or queued", passed, "TestFaults")
	return nil
}

// freshness is B14.
func (c *cpu) freshness(ctx context.Context, s *report) error {
	found, err := goBench(ctx, "./cmd/edge-infer/internal/bench", "Freshness", "1x")
	if err != nil {
		return err
	}
	f := found["Freshness"]
	s.atMost("B14", "p99 of a frame's age at the engine's start, engine three times slower than the camera", f["age-p99-intervals"],
		1.05, tolerance, "intervals", "")
	s.atLeast("B14", "that of a queue of four / ours", f["fifo/ours"], 4, tolerance, "")
	s.atMost("B14", "frames neither processed nor counted as dropped", f["unaccounted"], 0, 0, "", "")
	return nil
}

// messages is B16.
func (c *cpu) messages(ctx context.Context, s *report) error {
	found, err := goBench(ctx, "./mqtt", "EndToEnd", "1x")
	if err != nil {
		return err
	}
	f := found["EndToEnd"]
	s.atMost("B16", "hand-over to subscriber, p50 / minimal client with one write", f["ours/hand"], 1.5, tolerance, "ratio",
		fmt.Sprintf("%s us of %s us", number(f["ours_p50_us"].median()), number(f["hand_p50_us"].median())))
	s.info("B16", "that of paho", f["paho/hand"], "ratio", "")
	return nil
}

// agreement is B17.
func (c *cpu) agreement(ctx context.Context, s *report) error {
	for _, test := range []struct{ what, pkg, pattern string }{
		{"networks of every head return the boxes of their reference", "./postprocess/predict", "TestCorpus"},
		{"decoding and NMS equal the reference implementation on random tensors", "./postprocess/head", "Reference|Random"},
	} {
		_, passed, err := goTest(ctx, nil, test.pkg, test.pattern)
		if err != nil {
			return err
		}
		s.pass("B17", test.what, passed, test.pattern)
	}
	return nil
}
