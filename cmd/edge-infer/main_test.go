package main

import (
	"testing"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

func TestMain(m *testing.M) {
	programtest.Main(m, start)
}
