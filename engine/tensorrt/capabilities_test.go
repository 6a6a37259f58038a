package tensorrt

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/cuda"
)

func TestExpectedCapabilities(t *testing.T) {
	for _, test := range []struct {
		board        string
		version      Version
		major, minor int
		want         []string
	}{
		{"Jetson Nano", Version{Major: 8}, 5, 3, []string{"fp32", "fp16"}},
		{"GTX 1080", Version{Major: 8}, 6, 1, []string{"fp32", "int8"}},
		{"Jetson TX2", Version{Major: 8}, 6, 2, []string{"fp32", "fp16"}},
		{"Jetson Xavier", Version{Major: 8}, 7, 2, []string{"fp32", "fp16", "int8"}},
		{"Jetson Orin, JetPack 6.0", Version{Major: 8}, 8, 7, []string{"fp32", "fp16", "int8"}},
		{"Jetson Orin, JetPack 6.1", Version{Major: 10}, 8, 7, []string{"fp32", "fp16", "int8", "bf16"}},
		{"H200", Version{Major: 10, Minor: 6}, 9, 0, []string{"fp32", "fp16", "int8", "bf16", "fp8"}},
		{"Jetson Thor", Version{Major: 10, Minor: 13}, 11, 0, []string{"fp32", "fp16", "int8", "bf16", "fp8", "fp4"}},
	} {
		found := ExpectedCapabilities(test.version, cuda.Facts{Major: test.major, Minor: test.minor})
		require.Equal(t, Capabilities{Precisions: test.want}, found, test.board)
	}
	require.Equal(t, -1, ExpectedCapabilities(Version{Major: 8}, cuda.Facts{Major: 8, Minor: 7, Integrated: true}).DLACores)
}
