package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFindPictureInput(t *testing.T) {
	info := func(kind DataType, shape ...int64) []TensorInfo {
		return []TensorInfo{{Name: "x", Type: kind, Shape: shape}}
	}
	sized := Metadata{Width: 320, Height: 192}
	for _, test := range []struct {
		name     string
		inputs   []TensorInfo
		metadata Metadata
		want     PictureInput
		found    bool
	}{
		{"fixed", info(Float32, 1, 3, 480, 640), sized, PictureInput{Channels: 3, Width: 640, Height: 480, Batch: 1}, true},
		{"free batch", info(Float32, -1, 3, 480, 640), Metadata{}, PictureInput{Channels: 3, Width: 640, Height: 480}, true},
		{"free sides", info(Float16, -1, 3, -1, -1), sized, PictureInput{Type: Float16, Channels: 3, Width: 320, Height: 192}, true},
		{"all free", info(Float32, -1, -1, -1, -1), Metadata{}, PictureInput{Channels: 3, Width: DefaultSide, Height: DefaultSide}, true},
		{"gray", info(Float32, 4, 1, 28, 28), Metadata{}, PictureInput{Channels: 1, Width: 28, Height: 28, Batch: 4}, true},
		{"channels last", info(Float32, 1, 480, 640, 3), Metadata{}, PictureInput{}, false},
		{"bytes", info(Uint8, 1, 3, 480, 640), Metadata{}, PictureInput{}, false},
		{"flat", info(Float32, 1, 3), Metadata{}, PictureInput{}, false},
		{"two inputs", append(info(Float32, 1, 3, 8, 8), info(Float32, 1, 3, 8, 8)...), Metadata{}, PictureInput{}, false},
		{"none", nil, Metadata{}, PictureInput{}, false},
		{"too wide", info(Float32, 1, 3, 8, MaxSide+1), Metadata{}, PictureInput{Channels: 3, Width: MaxSide + 1, Height: 8, Batch: 1}, false},
	} {
		got, found := FindPictureInput(test.inputs, test.metadata)
		assert.Equal(t, test.found, found, test.name)
		assert.Equal(t, test.want, got, test.name)
	}
	p := PictureInput{Type: Float16, Channels: 3, Width: 320, Height: 192}
	assert.Equal(t, []int64{5, 3, 192, 320}, p.Shape(5))
	assert.Equal(t, 3*192*320*2, p.PictureBytes())
}
