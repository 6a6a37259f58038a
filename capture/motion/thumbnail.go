package motion

import "github.com/edge-infer/edge-infer/engine"

// Thumbnail is a small grey image of a frame. It belongs to its Reducer and is valid until the next Reduce.
type Thumbnail struct {
	Pix           []byte // Width*Height grey values, row by row without padding
	Width, Height int
	// ScaleX and ScaleY are source pixels per thumbnail pixel: pixel (x, y) covers the source from (x*ScaleX, y*ScaleY) to the next one.
	ScaleX, ScaleY float64
}

// Defaults of Reducer's fields.
const (
	DefaultLongestSide = 160
	DefaultSamples     = 2
)

// Reducer makes thumbnails of one camera. Each pixel is the mean of a few source pixels spread over its area, so that only part of a
// frame's memory is read. The zero value is ready; one goroutine may use it. It allocates when the image size or format changes.
type Reducer struct {
	// LongestSide is the longer side of the thumbnails, DefaultLongestSide when 0. Smaller sources keep their size.
	LongestSide int
	// Samples is the number of source pixels per direction and thumbnail pixel, DefaultSamples when 0. 1 is the fastest and the noisiest.
	Samples int

	img     Thumbnail
	source  engine.Image // image that columns and rows are for, without its memory
	columns []int32      // byte offsets of the samples in a source row, left to right
	rows    []int32      // source rows of the samples, top to bottom
	sums    []uint32     // of one row of the thumbnail
	copied  []byte       // rows of the first plane of an image in a GPU's memory
	host    engine.Image // those rows as an image
	spacing int          // of rows, which is the same between all; 0 if it is not
	inHost  []int32      // rows of the samples in host
}

// Reduce returns the thumbnail of a frame of any format. Colours weigh blue 1, green 2, red 1; luma samples are used as they are. The error
// is that of engine.Image.Check, or of a GPU that holds the frame.
func (r *Reducer) Reduce(image *engine.Image) (*Thumbnail, error) {
	if err := image.Check(); err != nil {
		return nil, err
	}
	if image.Width != r.source.Width || image.Height != r.source.Height || image.Format != r.source.Format {
		r.prepare(image)
	}
	image, rows, err := r.onHost(image)
	if err != nil {
		return nil, err
	}
	samples := r.samples()
	colour := image.Format == engine.BGR || image.Format == engine.BGRx
	// A sum has samples*samples values, four times as many with colours: its product with 2^24/count is below 2^32.
	count := uint32(samples * samples)
	if colour {
		count *= 4
	}
	scale := (1<<24 + count/2) / count
	for y := range r.img.Height {
		clear(r.sums)
		for _, row := range rows[y*samples : (y+1)*samples] {
			source := image.Data[int(row)*image.Stride:]
			source = source[:image.Format.RowBytes(image.Width)]
			if colour {
				r.addColours(source, samples)
			} else {
				r.addLuma(source, samples)
			}
		}
		out := r.img.Pix[y*r.img.Width:][:len(r.sums)]
		for x, sum := range r.sums {
			out[x] = byte(min(255, (uint64(sum)*uint64(scale)+1<<23)>>24))
		}
	}
	return &r.img, nil
}

// onHost returns an image in host memory and the rows of the samples in it. Of an image in a GPU's memory it copies the first plane, or
// only the sampled rows of it where these are evenly spaced, as at the usual sizes.
func (r *Reducer) onHost(image *engine.Image) (*engine.Image, []int32, error) {
	if !image.OnDevice() {
		return image, r.rows, nil
	}
	row := image.Format.RowBytes(image.Width)
	from, pitch := image.Device.Address, image.Stride
	count, rows := image.Height, r.rows
	if r.spacing > 0 {
		from += uint64(int(r.rows[0]) * image.Stride)
		pitch, count, rows = r.spacing*image.Stride, len(r.rows), r.inHost
	}
	if size := row * count; cap(r.copied) < size {
		r.copied = make([]byte, size)
	}
	r.host = *image
	r.host.Data, r.host.Stride, r.host.Device = r.copied[:row*count], row, engine.Device{}
	return &r.host, rows, image.Device.Memory.Copy(r.host.Data, from, pitch, row, count)
}

func (r *Reducer) addColours(row []byte, samples int) {
	columns, sums := r.columns, r.sums
	if samples == 2 { // the usual case, without an inner loop
		columns = columns[:2*len(sums)]
		for x := range sums {
			a, b := (*[3]byte)(row[columns[2*x]:]), (*[3]byte)(row[columns[2*x+1]:])
			sums[x] += uint32(a[0]) + uint32(a[2]) + uint32(b[0]) + uint32(b[2]) + 2*(uint32(a[1])+uint32(b[1]))
		}
		return
	}
	for x := range sums {
		var sum uint32
		for _, at := range columns[:samples] {
			pixel := (*[3]byte)(row[at:])
			sum += uint32(pixel[0]) + 2*uint32(pixel[1]) + uint32(pixel[2])
		}
		sums[x] += sum
		columns = columns[samples:]
	}
}

func (r *Reducer) addLuma(row []byte, samples int) {
	columns, sums := r.columns, r.sums
	if samples == 2 {
		columns = columns[:2*len(sums)]
		for x := range sums {
			sums[x] += uint32(row[columns[2*x]]) + uint32(row[columns[2*x+1]])
		}
		return
	}
	for x := range sums {
		var sum uint32
		for _, at := range columns[:samples] {
			sum += uint32(row[at])
		}
		sums[x] += sum
		columns = columns[samples:]
	}
}

func (r *Reducer) samples() int {
	if r.Samples > 0 {
		return min(r.Samples, 16)
	}
	return DefaultSamples
}

// prepare allocates the thumbnail and the sample positions for images like image.
func (r *Reducer) prepare(image *engine.Image) {
	longest, samples := r.LongestSide, r.samples()
	if longest <= 0 {
		longest = DefaultLongestSide
	}
	width, height := image.Width, image.Height
	if most := max(width, height); most > longest {
		width, height = max(1, (width*longest+most/2)/most), max(1, (height*longest+most/2)/most)
	}
	step := map[engine.PixelFormat]int{engine.BGR: 3, engine.BGRx: 4, engine.YUYV: 2}[image.Format]
	r.columns, r.rows = samplePositions(width*samples, image.Width, max(step, 1)), samplePositions(height*samples, image.Height, 1)
	r.spacing, r.inHost = evenSpacing(r.rows), make([]int32, len(r.rows))
	for i := range r.inHost {
		r.inHost[i] = int32(i)
	}
	r.sums = make([]uint32, width)
	r.img = Thumbnail{
		Pix: make([]byte, width*height), Width: width, Height: height,
		ScaleX: float64(image.Width) / float64(width), ScaleY: float64(image.Height) / float64(height),
	}
	r.source = *image
	r.source.Data, r.source.Device = nil, engine.Device{}
}

// samplePositions spreads samples evenly over the pixels of a side, each in the middle of its share; step is the number of bytes per pixel.
func samplePositions(samples, pixels, step int) []int32 {
	all := make([]int32, samples)
	for i := range all {
		all[i] = int32((2*i+1)*pixels/(2*samples)) * int32(step)
	}
	return all
}

// evenSpacing returns the distance of increasing positions if it is the same between all of them, otherwise 0.
func evenSpacing(positions []int32) int {
	if len(positions) < 2 {
		return 0
	}
	spacing := positions[1] - positions[0]
	for i := 2; i < len(positions); i++ {
		if positions[i]-positions[i-1] != spacing {
			return 0
		}
	}
	return int(spacing)
}
