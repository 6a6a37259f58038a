package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSides(t *testing.T) {
	hd, vga, upright := Size{1920, 1080}, Size{640, 480}, Size{1080, 1920}
	for _, test := range []struct {
		name          string
		options       Options
		metadata      Metadata
		width, height int
	}{
		{"nothing known", Options{}, Metadata{}, 640, 640},
		{"as exported", Options{}, Metadata{Width: 416, Height: 320}, 416, 320},
		{"asked for", Options{Width: 512, Height: 288, Sources: []Size{hd}}, Metadata{Width: 640, Height: 640}, 512, 288},
		{"16:9", Options{Sources: []Size{hd}}, Metadata{Width: 640, Height: 640}, 640, 384},
		{"16:9, rounded as the letterbox", Options{Sources: []Size{{1280, 704}}}, Metadata{}, 640, 352},
		{"16:9, stride 64", Options{Sources: []Size{hd}}, Metadata{Width: 1280, Height: 1280, Stride: 64}, 1280, 768},
		{"4:3", Options{Sources: []Size{vga}}, Metadata{}, 640, 480},
		{"9:16", Options{Sources: []Size{upright}}, Metadata{}, 384, 640},
		{"square", Options{Sources: []Size{{7, 7}}}, Metadata{}, 640, 640},
		{"a strip", Options{Sources: []Size{{32768, 1}}}, Metadata{}, 640, 32},
		{"two cameras", Options{Sources: []Size{hd, vga}}, Metadata{}, 640, 480},
		{"one upright", Options{Sources: []Size{hd, upright}}, Metadata{}, 640, 640},
		{"imgsz that is no multiple", Options{Sources: []Size{hd}}, Metadata{Width: 500, Height: 500}, 512, 288},
		{"top left", Options{Sources: []Size{hd}}, Metadata{Preprocess: Preprocess{Preset: "yolox"}, Width: 416, Height: 416}, 416, 256},
		{"stretched", Options{Sources: []Size{hd}}, Metadata{Preprocess: Preprocess{Preset: "rtdetr"}}, 640, 640},
		{"cropped", Options{Sources: []Size{hd}}, Metadata{Preprocess: Preprocess{Preset: "torchvision"}, Width: 224, Height: 224}, 224, 224},
		{"preset changed", Options{Sources: []Size{hd}}, Metadata{Preprocess: Preprocess{Preset: "rtdetr", Resize: Letterbox}}, 640, 384},
	} {
		width, height := test.options.Sides(test.metadata)
		assert.Equal(t, []int{test.width, test.height}, []int{width, height}, test.name)
	}
}
