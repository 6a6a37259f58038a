package main

import (
	"os"
	"testing"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

func TestMain(m *testing.M) {
	programtest.Main(m, func(args []string) int { return execute(args, os.Stdout, os.Stderr) })
}
