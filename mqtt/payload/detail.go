package payload

import "strconv"

// Detail holds the results of some tasks for an object in addition to its box. Empty fields are omitted from the payload.
type Detail struct {
	// Keypoints are x and y in source pixels and how likely the point is visible, in the order of the model.
	Keypoints [][3]float64
	// Names are the keypoints' names, in the same order; empty if unknown. They are written once per message: see AddNames.
	Names []string
	// Corners are the four corners of an oriented box in source pixels, or none; Angle is its clockwise rotation in radians.
	Corners [][2]float64
	Angle   float64
	Mask    Mask
	// Attributes are the results of secondary networks.
	Attributes []Attribute
	// Embedding is the vector of a network that embeds: binary16 numbers, little endian, in base64.
	Embedding []byte
}

// Attribute is one result of a secondary network.
type Attribute struct {
	Name, Value string
	Score       float64
}

// Mask is an object's shape in one of two forms: Counts or Polygons.
type Mask struct {
	// Counts is COCO's compressed run-length encoding of an image of Width x Height pixels.
	Counts        []byte
	Width, Height int
	// Polygons are outlines in source pixels, largest first.
	Polygons [][][2]float64
}

// appendJSON appends the fields that are there to an object, each with a comma before it.
func (d *Detail) appendJSON(buf []byte) []byte {
	if len(d.Keypoints) > 0 {
		buf = append(buf, `,"keypoints":[`...)
		for i := range d.Keypoints {
			buf = appendNumbers(separate(buf, i), d.Keypoints[i][:])
		}
		buf = append(buf, ']')
	}
	if len(d.Corners) > 0 {
		buf = append(buf, `,"angle":`...)
		buf = AppendDecimal(buf, d.Angle)
		buf = append(buf, `,"corners":[`...)
		for i := range d.Corners {
			buf = appendNumbers(separate(buf, i), d.Corners[i][:])
		}
		buf = append(buf, ']')
	}
	return appendEmbedding(appendAttributes(d.Mask.appendJSON(buf), d.Attributes), d.Embedding)
}

// appendEmbedding appends the field embedding, or nothing.
func appendEmbedding(buf, embedding []byte) []byte {
	if len(embedding) == 0 {
		return buf
	}
	buf = append(buf, `,"embedding":"`...)
	return append(append(buf, embedding...), '"')
}

// AddNames puts the names of the object's keypoints under its label, in a map that may be nil.
func (d *Detection) AddNames(byLabel map[string][]string) map[string][]string {
	if !d.named() {
		return byLabel
	}
	if byLabel == nil {
		byLabel = map[string][]string{}
	}
	byLabel[d.Label] = d.Names
	return byLabel
}

func (d *Detection) named() bool { return len(d.Names) > 0 && len(d.Keypoints) > 0 }

// appendKeypointNames appends the field keypoint_names, the names of the points of each label that there is, or nothing.
func appendKeypointNames(buf []byte, objects []Detection) []byte {
	count := 0
	for i := range objects {
		o := &objects[i]
		if !o.named() || namedBefore(objects[:i], o.Class) {
			continue
		}
		if count == 0 {
			buf = append(buf, `,"keypoint_names":{`...)
		}
		buf = AppendString(separate(buf, count), o.Label)
		buf = append(buf, `:[`...)
		for k, name := range o.Names {
			buf = AppendString(separate(buf, k), name)
		}
		buf = append(buf, ']')
		count++
	}
	if count > 0 {
		buf = append(buf, '}')
	}
	return buf
}

func namedBefore(objects []Detection, class int) bool {
	for i := range objects {
		if objects[i].Class == class && objects[i].named() {
			return true
		}
	}
	return false
}

// appendAttributes appends the field attributes, or nothing.
func appendAttributes(buf []byte, all []Attribute) []byte {
	if len(all) == 0 {
		return buf
	}
	buf = append(buf, `,"attributes":{`...)
	for i := range all {
		a := &all[i]
		buf = AppendString(separate(buf, i), a.Name)
		buf = append(buf, `:{"value":`...)
		buf = AppendString(buf, a.Value)
		buf = append(buf, `,"score":`...)
		buf = append(AppendDecimal(buf, a.Score), '}')
	}
	return append(buf, '}')
}

func (m *Mask) appendJSON(buf []byte) []byte {
	switch {
	case len(m.Counts) > 0:
		buf = append(buf, `,"mask":{"size":[`...)
		buf = strconv.AppendInt(buf, int64(m.Height), 10)
		buf = append(buf, ',')
		buf = strconv.AppendInt(buf, int64(m.Width), 10)
		buf = append(buf, `],"counts":"`...)
		buf = append(appendCounts(buf, m.Counts), '"', '}')
	case len(m.Polygons) > 0:
		buf = append(buf, `,"mask":{"polygons":[`...)
		for i, polygon := range m.Polygons {
			buf = append(separate(buf, i), '[')
			for k, point := range polygon {
				buf = AppendDecimal(separate(buf, k), point[0])
				buf = AppendDecimal(append(buf, ','), point[1])
			}
			buf = append(buf, ']')
		}
		buf = append(buf, `]}`...)
	}
	return buf
}

// appendCounts appends COCO's compressed run lengths as the inside of a JSON string.
func appendCounts(buf, counts []byte) []byte {
	for _, c := range counts {
		if c == '\\' { // the only letter of the encoding that JSON must escape
			buf = append(buf, '\\')
		}
		buf = append(buf, c)
	}
	return buf
}

// separate appends a comma before every element but the first.
func separate(buf []byte, number int) []byte {
	if number > 0 {
		return append(buf, ',')
	}
	return buf
}

func appendNumbers(buf []byte, numbers []float64) []byte {
	buf = append(buf, '[')
	for i, v := range numbers {
		buf = AppendDecimal(separate(buf, i), v)
	}
	return append(buf, ']')
}
