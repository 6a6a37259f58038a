package engine_test

import (
	"image"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

// Every byte of a copied part is the one that the image has in its place, for all formats.
func TestPartsAreOfTheImage(t *testing.T) {
	const width, height = 40, 30
	part := image.Rect(6, 4, 26, 20)
	for format := engine.BGR; format <= engine.GRAY8; format++ {
		stride := format.RowBytes(width) + 7
		img := engine.Image{
			Data: make([]byte, stride*format.Rows(height)), Width: width, Height: height, Stride: stride, Format: format,
		}
		for i := range img.Data {
			img.Data[i] = byte(i * 31 >> 2)
		}
		crop, err := img.CopyPart(make([]byte, img.PartBytes(part)), part)
		require.NoError(t, err)
		require.NoError(t, crop.Check())
		pixel := format.RowBytes(2)
		for y := range part.Dy() {
			for x := 0; x < part.Dx(); x += 2 {
				want := img.Data[(y+4)*stride+format.RowBytes(x+6):][:pixel]
				require.Equal(t, want, crop.Data[y*crop.Stride+format.RowBytes(x):][:pixel], "%v at %d, %d", format, x, y)
				if format == engine.NV12 && y%2 == 0 {
					want := img.Data[stride*height+(y+4)/2*stride+x+6:][:2]
					require.Equal(t, want, crop.Data[crop.Stride*crop.Height+y/2*crop.Stride+x:][:2], "colours at %d, %d", x, y)
				}
			}
		}
	}
}
