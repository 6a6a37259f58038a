// Package enginetest is the contract test suite of engine.Engine, which every backend must pass. Only tests import it.
package enginetest

import (
	"embed"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

//go:generate python3 testdata/generate.py

//go:embed testdata/*.onnx
var networks embed.FS

// Network returns the options that open one of the test networks; testdata/generate.py defines them.
func Network(t testing.TB, name string) engine.Options {
	data, err := networks.ReadFile("testdata/" + name + ".onnx")
	require.NoError(t, err)
	return engine.Options{Path: name + ".onnx", Bytes: data}
}
