package jpegimage

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func TestImagesShowTheFrame(t *testing.T) {
	const width, height = 64, 48
	red := color.RGBA{200, 30, 40, 255}
	y, cb, cr := color.RGBToYCbCr(red.R, red.G, red.B)
	// Video has a smaller range than JPEG.
	chroma := func(v uint8) uint8 { return uint8(128.5 + (float64(v)-128)*224/255) }
	y, cb, cr = uint8(16.5+float64(y)*219/255), chroma(cb), chroma(cr)
	pixel := map[engine.PixelFormat][]byte{
		engine.BGR: {red.B, red.G, red.R}, engine.BGRx: {red.B, red.G, red.R, 0}, engine.YUYV: {y, cb, y, cr}, engine.GRAY8: {90},
	}
	for format := engine.BGR; format <= engine.GRAY8; format++ {
		for _, padding := range []int{0, 32} {
			row := format.RowBytes(width)
			f := &capture.Frame{
				Width: width, Height: height, Stride: row + padding, Format: format, Data: make([]byte, (row+padding)*format.Rows(height)),
			}
			for r := range format.Rows(height) {
				for i := range row {
					at := &f.Data[r*f.Stride+i]
					switch {
					case format == engine.NV12 && r < height:
						*at = y
					case format == engine.NV12:
						*at = [2]byte{cb, cr}[i%2]
					default:
						*at = pixel[format][i%len(pixel[format])]
					}
				}
			}
			var copied Pixels
			part, err := copied.Copy(&pipeline.Result{Frame: f}, image.Rect(0, 0, width, height))
			require.NoError(t, err)
			e := Encoder{Quality: 90}
			for _, e.MaxWidth = range []int{width, width / 2} {
				limit := e.MaxWidth
				require.NoError(t, e.Load(&copied, part))
				data, err := e.JPEG()
				require.NoError(t, err)
				img, err := jpeg.Decode(bytes.NewReader(data))
				require.NoError(t, err)
				require.Equal(t, image.Rect(0, 0, limit, height*limit/width), img.Bounds())
				want := red
				if format == engine.GRAY8 {
					want = color.RGBA{90, 90, 90, 255}
				}
				r, g, b, _ := img.At(limit/2, 10).RGBA()
				require.InDelta(t, want.R, r>>8, 6, "%v", format)
				require.InDelta(t, want.G, g>>8, 6, "%v", format)
				require.InDelta(t, want.B, b>>8, 6, "%v", format)
			}
			e.Close()
		}
	}
	e := Encoder{Quality: 90}
	defer e.Close()
	part := image.Rect(0, 0, 5, 3)
	require.EqualError(t, e.Load(&Pixels{Format: 99, Width: 1, Height: 1, Data: []byte{1}}, part), "pixels of format PixelFormat(99)")
	require.EqualError(t, e.Load(&Pixels{}, part), "0 bytes for a BGR image of 0x0")
	require.EqualError(t, e.Load(&Pixels{Width: 2, Height: 2, Data: make([]byte, 11)}, part), "11 bytes for a BGR image of 2x2")
	require.EqualError(t, e.Load(&Pixels{Width: 2, Height: 2, Data: make([]byte, 12)}, image.Rect(2, 0, 3, 1)), "no pixel of an image of 2x2")
	odd := &Pixels{Format: engine.NV12, Width: 5, Height: 3, Data: make([]byte, 20)}
	require.ErrorContains(t, e.Load(odd, part), "convert NV12 image of 5x3: ")
}

// A part of an image is what lies there, with every format and with padded rows.
func TestCopyOfAPart(t *testing.T) {
	for format := engine.BGR; format <= engine.GRAY8; format++ {
		row := format.RowBytes(8)
		source := capture.Frame{Width: 8, Height: 6, Stride: row + 5, Format: format, Data: make([]byte, (row+5)*format.Rows(6))}
		for i := range source.Data {
			source.Data[i] = byte(i)
		}
		var p Pixels
		part, err := p.Copy(&pipeline.Result{Frame: &source}, image.Rect(2, 1, 6, 40))
		require.NoError(t, err)
		require.Equal(t, image.Pt(4, 5), part.Size(), "%v", format)
		require.Len(t, p.Data, format.RowBytes(p.Width)*format.Rows(p.Height))
		left, top := 2-part.Min.X, 1-part.Min.Y // of what was copied
		for y := range p.Height {
			for x := range format.RowBytes(p.Width) {
				require.Equal(t, source.Data[(top+y)*source.Stride+format.RowBytes(left)+x], p.Data[y*format.RowBytes(p.Width)+x],
					"%v at byte %d of row %d", format, x, y)
			}
		}
	}
}

// TestSmallCopies: of an image in a GPU's memory that is shrunk, only some rows are copied. It is encoded with the aspect ratio of all.
func TestSmallCopies(t *testing.T) {
	const width, height = 96, 54
	memory := &enginetest.DeviceMemory{Data: bytes.Repeat([]byte{128}, width*height*3/2)}
	img := memory.Image(engine.NV12, width, height, width)
	device := &capture.Frame{Width: width, Height: height, Stride: width, Format: engine.NV12, Device: img.Device}
	host := &capture.Frame{Width: width, Height: height, Stride: width, Format: engine.NV12, Data: memory.Data}
	region := []zone.Point{{X: 0.2, Y: 0.2}, {X: 0.8, Y: 0.2}, {X: 0.5, Y: 0.8}}
	hidden := &pipeline.Hidden{Regions: [][]zone.Point{region}}
	for _, test := range []struct {
		name               string
		frame              *capture.Frame
		hidden             *pipeline.Hidden
		limit, rows        int
		shrunk, shrunkHigh int
	}{
		{"any width", device, nil, 0, 54, 96, 54},
		{"wider", device, nil, 200, 54, 96, 54},
		{"less than half", device, nil, 64, 54, 64, 36},
		{"a third", device, nil, 32, 18, 32, 18},
		{"a fifth", device, nil, 20, 12, 20, 11},
		{"with a hidden region", device, hidden, 20, 54, 20, 11},
		{"in host memory", host, nil, 20, 54, 20, 11},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p Pixels
			require.NoError(t, p.CopySmall(&pipeline.Result{Frame: test.frame, Hidden: test.hidden}, test.limit))
			require.Len(t, p.Data, width*test.rows*3/2)
			e := Encoder{Quality: 90, MaxWidth: test.limit}
			defer e.Close()
			require.NoError(t, e.Load(&p, p.Bounds()))
			got, high := e.Size()
			require.Equal(t, [2]int{test.shrunk, test.shrunkHigh}, [2]int{got, high})
		})
	}
}

// TestLeasedPixels: the frame is copied by Fetch, which may come after its release, and is the camera's again after it.
func TestLeasedPixels(t *testing.T) {
	for format := engine.BGR; format <= engine.GRAY8; format++ {
		pool := &capture.Pool{Buffers: 2}
		frame, err := pool.Frame(format, 8, 6)
		require.NoError(t, err)
		for i := range frame.Data {
			frame.Data[i] = byte(i)
		}
		in := &pipeline.Result{Frame: &frame, Hidden: &pipeline.Hidden{Boxes: []postprocess.Box{{X2: 3, Y2: 3}}}}
		for _, part := range []image.Rectangle{image.Rect(0, 0, 8, 6), image.Rect(3, 1, 6, 40)} {
			var want, got Pixels
			place, err := want.Copy(in, part)
			require.NoError(t, err)
			leased, err := got.Lease(in, part)
			require.NoError(t, err)
			require.Equal(t, place, leased)
			require.Empty(t, got.Data)
			got.Fetch()
			got.Fetch()
			require.Equal(t, want, got, "%v", format)
		}
		var got Pixels
		require.NoError(t, got.LeaseSmall(in, 4))
		frame.Release()
		require.Equal(t, 1, pool.Lent())
		got.Fetch()
		require.Equal(t, frame.Data, got.Data)
		require.Zero(t, pool.Lent())
		require.NoError(t, pool.Close())
	}
	kept := &capture.Frame{Width: 2, Height: 1, Stride: 2, Format: engine.GRAY8, Data: []byte{1, 2}}
	var p Pixels
	_, err := p.Lease(&pipeline.Result{Frame: kept}, image.Rect(0, 0, 2, 1))
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2}, p.Data, "a frame without a pool is copied at once")
}
