package engine

// DefaultSide is the input width and height of a model that leaves both open and has no imgsz in its metadata.
const DefaultSide = 640

// PictureInput is a network input that takes one picture per batch position, as planes: batch, channels, height, width.
type PictureInput struct {
	Index         int // among the model's inputs
	Type          DataType
	Channels      int // 3 for R, G, B planes, 1 for gray
	Width, Height int
	Batch         int // number of pictures of one run; 0 when it is free
}

// FindPictureInput recognizes the picture input of a model: its only input, with four dimensions, 1 or 3 channels and float elements. Sides
// that the model leaves open come from the metadata, else they are DefaultSide. It reports false for any other model; those run through
// SubmitTensors.
func FindPictureInput(inputs []TensorInfo, m Metadata) (PictureInput, bool) {
	if len(inputs) != 1 || len(inputs[0].Shape) != 4 {
		return PictureInput{}, false
	}
	in := inputs[0]
	batch, channels, height, width := in.Shape[0], in.Shape[1], in.Shape[2], in.Shape[3]
	if channels < 0 {
		channels = 3
	}
	if in.Type != Float32 && in.Type != Float16 || channels != 1 && channels != 3 || batch == 0 {
		return PictureInput{}, false
	}
	side := func(fixed int64, imgsz int) int {
		switch {
		case fixed > 0:
			return int(min(fixed, MaxSide+1))
		case imgsz > 0:
			return imgsz
		}
		return DefaultSide
	}
	p := PictureInput{
		Type: in.Type, Channels: int(channels), Batch: int(max(batch, 0)),
		Width: side(width, m.Width), Height: side(height, m.Height),
	}
	return p, p.Width <= MaxSide && p.Height <= MaxSide && height != 0 && width != 0
}

// Shape of the input for a number of pictures.
func (p PictureInput) Shape(batch int) []int64 {
	return []int64{int64(batch), int64(p.Channels), int64(p.Height), int64(p.Width)}
}

// PictureBytes is the size of one batch position.
func (p PictureInput) PictureBytes() int { return p.Channels * p.Height * p.Width * p.Type.Size() }
