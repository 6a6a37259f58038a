package engine

// Size is the size of an image in pixels.
type Size struct{ Width, Height int }

// defaultStride is the largest stride of most detectors.
const defaultStride = 32

// Sides chooses the sides of an image input that leaves them open: Width and Height if set, otherwise the smallest shape, in multiples of
// the network's stride, that scales no source smaller than the square of imgsz would: 640x384 for 16:9. Without sources it returns the
// metadata's sides or DefaultSide. m is the model's metadata, overridden or not. Inputs that are not letterboxed have no padding to save.
func (o *Options) Sides(m Metadata) (width, height int) {
	if o.Width > 0 && o.Height > 0 {
		return o.Width, o.Height
	}
	width, height = DefaultSide, DefaultSide
	if m.Width > 0 && m.Height > 0 {
		width, height = m.Width, m.Height
	}
	if len(o.Sources) == 0 || !letterboxed(m.Preprocess) {
		return width, height
	}
	stride := m.Stride
	if stride == 0 {
		stride = defaultStride
	}
	longest := max(width, height)
	width, height = 0, 0
	for _, source := range o.Sources {
		w, h := leastSides(source, longest, stride)
		width, height = max(width, w), max(height, h)
	}
	return width, height
}

func letterboxed(p Preprocess) bool {
	resize := p.Resize
	if resize == "" && p.Preset != "" {
		resize = preset(p.Preset, DefaultSide).Resize
	}
	return resize == "" || resize == Letterbox || resize == LetterboxTopLeft
}

// leastSides returns the smallest shape for the source if its longer side is resized to longest.
func leastSides(source Size, longest, stride int) (width, height int) {
	longer := max(source.Width, source.Height, 1)
	side := func(of int) int {
		resized := max((2*of*longest+longer)/(2*longer), 1) // rounded to the nearest like the letterbox
		return (resized + stride - 1) / stride * stride
	}
	return side(source.Width), side(source.Height)
}
