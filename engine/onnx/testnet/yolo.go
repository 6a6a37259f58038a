package testnet

import (
	"fmt"
	"math"
	"strings"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// YOLO configures a detector. The zero value has 640 pixels, 80 classes, size n, batch 1 and folded batch normalization.
type YOLO struct {
	Size, Classes int64
	Wide          int64 // channels of the first layer, 16 in the n size
	Dynamic       bool  // dynamic batch
	Norms         bool  // keep BatchNormalization nodes, as an export in training mode does
	Opset         int64 // 17
	Seed          uint64
}

func (y YOLO) filled() YOLO {
	for _, f := range []struct {
		field     *int64
		otherwise int64
	}{{&y.Size, 640}, {&y.Classes, 80}, {&y.Wide, 16}, {&y.Opset, 17}} {
		if *f.field == 0 {
			*f.field = f.otherwise
		}
	}
	return y
}

func (y YOLO) batch() int64 {
	if y.Dynamic {
		return -1
	}
	return 1
}

// detector adds the blocks; a 0 in a Reshape's shape keeps the batch dimension.
type detector struct {
	*Builder
	YOLO
}

// conv adds the Conv, normalization and SiLU of every block; bare omits the activation.
func (d detector) conv(name, x string, in, out, kernel, stride, group int64, bare bool) string {
	x = d.Conv(name+"/conv", x, Convolution{In: in, Out: out, Kernel: kernel, Stride: stride, Group: group, NoBias: d.Norms})
	if d.Norms {
		x = d.Norm(name+"/bn", x, out)
	}
	if bare {
		return x
	}
	return d.SiLU(name+"/act", x)
}

func (d detector) cbs(name, x string, in, out, kernel, stride int64) string {
	return d.conv(name, x, in, out, kernel, stride, 1, false)
}

func (d detector) concat(name string, axis int64, inputs ...string) string {
	return d.Node("Concat", name, inputs, onnx.Int("axis", axis))
}

func (d detector) split(name, x string, axis int64, sizes ...int64) []string {
	return d.Nodes("Split", name, []string{x, d.Ints(name+".split", sizes...)}, len(sizes), onnx.Int("axis", axis))
}

// bottleneck adds two convolutions with a residual connection.
func (d detector) bottleneck(name, x string, channels, hidden int64, shortcut bool) string {
	y := d.cbs(name+"/cv2", d.cbs(name+"/cv1", x, channels, hidden, 3, 1), hidden, channels, 3, 1)
	if shortcut {
		return d.Node("Add", name, []string{x, y})
	}
	return y
}

// c2f adds YOLOv8's block: half of the channels pass n bottlenecks, and all intermediate outputs are concatenated.
func (d detector) c2f(name, x string, in, out int64, n int, shortcut bool) string {
	half := out / 2
	parts := d.split(name, d.cbs(name+"/cv1", x, in, out, 1, 1), 1, half, half)
	for i := range n {
		parts = append(parts, d.bottleneck(fmt.Sprintf("%s/m.%d", name, i), parts[len(parts)-1], half, half, shortcut))
	}
	return d.cbs(name+"/cv2", d.concat(name, 1, parts...), half*int64(2+n), out, 1, 1)
}

// c3k2 adds YOLO11's block: a c2f whose inner block is a bottleneck or, with c3k, a small CSP block.
func (d detector) c3k2(name, x string, in, out int64, c3k bool, ratio float64) string {
	hidden := int64(float64(out) * ratio)
	parts := d.split(name, d.cbs(name+"/cv1", x, in, 2*hidden, 1, 1), 1, hidden, hidden)
	inner := name + "/m.0"
	if !c3k {
		parts = append(parts, d.bottleneck(inner, parts[1], hidden, hidden/2, true))
	} else {
		left := d.cbs(inner+"/cv1", parts[1], hidden, hidden/2, 1, 1)
		for i := range 2 {
			left = d.bottleneck(fmt.Sprintf("%s/m/m.%d", inner, i), left, hidden/2, hidden/2, true)
		}
		right := d.cbs(inner+"/cv2", parts[1], hidden, hidden/2, 1, 1)
		parts = append(parts, d.cbs(inner+"/cv3", d.concat(inner, 1, left, right), hidden, hidden, 1, 1))
	}
	return d.cbs(name+"/cv2", d.concat(name, 1, parts...), 3*hidden, out, 1, 1)
}

// scdown downsamples with a depthwise convolution after a pointwise one.
func (d detector) scdown(name, x string, in, out int64) string {
	return d.conv(name+"/cv2", d.cbs(name+"/cv1", x, in, out, 1, 1), out, out, 3, 2, out, true)
}

// c2fcib adds a c2f whose inner block is inverted: depthwise and pointwise convolutions that expand and reduce the channels.
func (d detector) c2fcib(name, x string, in, out int64) string {
	half := out / 2
	parts := d.split(name, d.cbs(name+"/cv1", x, in, out, 1, 1), 1, half, half)
	inner := name + "/m.0/cv1"
	y := d.conv(inner+"/0", parts[1], half, half, 3, 1, half, false)
	y = d.cbs(inner+"/1", y, half, out, 1, 1)
	y = d.conv(inner+"/2", y, out, out, 7, 1, out, false)
	y = d.cbs(inner+"/3", y, out, half, 1, 1)
	y = d.conv(inner+"/4", y, half, half, 3, 1, half, false)
	parts = append(parts, d.Node("Add", name+"/m.0", []string{parts[1], y}))
	return d.cbs(name+"/cv2", d.concat(name, 1, parts...), half*3, out, 1, 1)
}

// sppf adds spatial pyramid pooling: three consecutive poolings, concatenated.
func (d detector) sppf(name, x string, channels int64) string {
	x = d.cbs(name+"/cv1", x, channels, channels/2, 1, 1)
	parts := []string{x}
	for range 3 {
		x = d.Node("MaxPool", name+"/m", []string{x}, onnx.Ints("kernel_shape", 5, 5), onnx.Ints("pads", 2, 2, 2, 2), onnx.Ints("strides", 1, 1))
		parts = append(parts, x)
	}
	return d.cbs(name+"/cv2", d.concat(name, 1, parts...), 2*channels, channels, 1, 1)
}

// c2psa adds YOLO11's attention block: half of the channels pass a position-sensitive attention and a feed-forward layer.
func (d detector) c2psa(name, x string, channels, side int64) string {
	half := channels / 2
	parts := d.split(name, d.cbs(name+"/cv1", x, channels, channels, 1, 1), 1, half, half)
	block := name + "/m/m.0"
	y := d.Node("Add", block, []string{parts[1], d.attention(block+"/attn", parts[1], half, side)})
	z := d.conv(block+"/ffn/ffn.1", d.cbs(block+"/ffn/ffn.0", y, half, 2*half, 1, 1), 2*half, half, 1, 1, 1, true)
	y = d.Node("Add", block, []string{y, z})
	return d.cbs(name+"/cv2", d.concat(name, 1, parts[0], y), channels, channels, 1, 1)
}

func (d detector) attention(name, x string, channels, side int64) string {
	heads := max(channels/64, 1)
	value := channels / heads
	key := value / 2
	qkv := d.conv(name+"/qkv", x, channels, channels+2*key*heads, 1, 1, 1, true)
	qkv = d.Node("Reshape", name, []string{qkv, d.Ints(name+".shape", 0, heads, 2*key+value, side*side)})
	parts := d.split(name, qkv, 2, key, key, value)
	q := d.Node("Transpose", name, []string{parts[0]}, onnx.Ints("perm", 0, 1, 3, 2))
	weight := d.Node("MatMul", name, []string{q, parts[1]})
	weight = d.Node("Mul", name, []string{weight, d.Floats(name+".scale", []float32{float32(1 / math.Sqrt(float64(key)))})})
	weight = d.Node("Softmax", name, []string{weight}, onnx.Int("axis", -1))
	weight = d.Node("Transpose", name, []string{weight}, onnx.Ints("perm", 0, 1, 3, 2))
	y := d.Node("MatMul", name, []string{parts[2], weight})
	img := d.Ints(name+".image", 0, channels, side, side)
	y = d.Node("Reshape", name, []string{y, img})
	position := d.conv(name+"/pe", d.Node("Reshape", name, []string{parts[2], img}), channels, channels, 3, 1, channels, true)
	return d.conv(name+"/proj", d.Node("Add", name, []string{y, position}), channels, channels, 1, 1, 1, true)
}

func (d detector) upsample(name, x string) string {
	return d.Node("Resize", name, []string{x, "", d.Floats(name+".scales", []float32{1, 1, 2, 2}, 4)},
		onnx.String("coordinate_transformation_mode", "asymmetric"), onnx.String("mode", "nearest"), onnx.String("nearest_mode", "floor"))
}

// heads adds the convolutions of the detect head for one scale: 64 channels of box distribution, and the class scores. light uses depthwise
// convolutions in the class branch, as in YOLO11.
func (d detector) heads(name string, i int, x string, in, boxHidden, classHidden int64, light bool) string {
	box := fmt.Sprintf("%s/cv2.%d", name, i)
	y := d.cbs(box+"/"+box[len(name)+1:]+".1", d.cbs(box+"/"+box[len(name)+1:]+".0", x, in, boxHidden, 3, 1), boxHidden, boxHidden, 3, 1)
	y = d.Conv(box+"/"+box[len(name)+1:]+".2", y, Convolution{In: boxHidden, Out: 64, Kernel: 1, BiasMean: 1})
	class := fmt.Sprintf("%s/cv3.%d", name, i)
	z := x
	if light {
		z = d.conv(class+"/0/0", z, in, in, 3, 1, in, false)
		z = d.cbs(class+"/0/1", z, in, classHidden, 1, 1)
		z = d.conv(class+"/1/0", z, classHidden, classHidden, 3, 1, classHidden, false)
		z = d.cbs(class+"/1/1", z, classHidden, classHidden, 1, 1)
	} else {
		z = d.cbs(class+"/1", d.cbs(class+"/0", z, in, classHidden, 3, 1), classHidden, classHidden, 3, 1)
	}
	z = d.Conv(class+"/2", z, Convolution{In: classHidden, Out: d.Classes, Kernel: 1, BiasMean: -2})
	return d.concat(name, 1, y, z)
}

// corners are the decoded outputs of a detect head: top left and bottom right corners of boxes in strides, the strides, and class scores.
type corners struct {
	low, high, strides, scores string
	anchors                    int64
}

// decode returns the corners of the three scales.
func (d detector) decode(name string, scales [3]string, channels [3]int64, light bool) corners {
	boxHidden, classHidden := max(d.Wide, channels[0]/4, 64), max(channels[0], min(d.Classes, 100))
	var flat []string
	var x, y, strides []float32
	for i, scale := range scales {
		maps := d.heads(name, i, scale, channels[i], boxHidden, classHidden, light)
		flat = append(flat, d.Node("Reshape", name, []string{maps, d.Ints(name+".flat", 0, 64+d.Classes, -1)}))
		stride := int64(8) << i
		for row := range d.Size / stride {
			for column := range d.Size / stride {
				x, y, strides = append(x, float32(column)+0.5), append(y, float32(row)+0.5), append(strides, float32(stride))
			}
		}
	}
	anchors := int64(len(x))
	parts := d.split(name, d.concat(name, 2, flat...), 1, 64, d.Classes)
	dfl := name + "/dfl"
	z := d.Node("Reshape", dfl, []string{parts[0], d.Ints(dfl+".bins", 0, 4, 16, anchors)})
	z = d.Node("Transpose", dfl, []string{z}, onnx.Ints("perm", 0, 2, 1, 3))
	z = d.Node("Softmax", dfl, []string{z}, onnx.Int("axis", 1))
	bins := make([]float32, 16)
	for i := range bins {
		bins[i] = float32(i)
	}
	weight := d.Floats(strings.TrimPrefix(dfl, "/")+".conv.weight", bins, 1, 16, 1, 1)
	z = d.Node("Conv", dfl+"/conv", []string{z, weight}, onnx.Ints("kernel_shape", 1, 1))
	z = d.Node("Reshape", dfl, []string{z, d.Ints(dfl+".sides", 0, 4, anchors)})
	sides := d.Nodes("Split", name, []string{z, d.Ints(name+".sides", 2, 2)}, 2, onnx.Int("axis", 1))
	centres := d.Floats(name+".anchors", append(x, y...), 1, 2, anchors)
	low := d.Node("Sub", name, []string{centres, sides[0]})
	high := d.Node("Add", name, []string{centres, sides[1]})
	return corners{low, high, d.Floats(name+".strides", strides, 1, anchors), d.Node("Sigmoid", name, []string{parts[1]}), anchors}
}

// detect decodes boxes as centre and size in input pixels, and class scores: [batch, 4+classes, anchors].
func (d detector) detect(name string, scales [3]string, channels [3]int64, light bool) *onnx.Model {
	c := d.decode(name, scales, channels, light)
	middle := d.Node("Div", name, []string{d.Node("Add", name, []string{c.low, c.high}), d.Floats(name+".two", []float32{2})})
	size := d.Node("Sub", name, []string{c.high, c.low})
	boxes := d.Node("Mul", name, []string{d.concat(name, 1, middle, size), c.strides})
	d.Rename(d.concat(name, 1, boxes, c.scores), "output0")
	d.Output("output0", d.batch(), 4+d.Classes, c.anchors)
	return d.described()
}

// endToEnd decodes the best boxes, which need no NMS: [batch, 300, 6] of corners in input pixels, score and class.
func (d detector) endToEnd(name string, scales [3]string, channels [3]int64, light bool) *onnx.Model {
	c := d.decode(name, scales, channels, light)
	byAnchor := func(x string) string { return d.Node("Transpose", name, []string{x}, onnx.Ints("perm", 0, 2, 1)) }
	best := min(300, c.anchors)
	gather := func(x, index string, width int64) string {
		index = d.Node("Tile", name, []string{index, d.Ints(fmt.Sprintf("%s.tile%d", name, width), 1, 1, width)})
		return d.Node("GatherElements", name, []string{x, index}, onnx.Int("axis", 1))
	}
	last := d.Ints(name+".last", -1)
	boxes := byAnchor(d.Node("Mul", name, []string{d.concat(name, 1, c.low, c.high), c.strides}))
	scores := byAnchor(c.scores)
	highest := d.Node("ReduceMax", name, []string{scores}, onnx.Ints("axes", -1), onnx.Int("keepdims", 0))
	count := d.Ints(name+".best", best)
	anchors := d.Node("Unsqueeze", name, []string{d.Nodes("TopK", name+"/anchors", []string{highest, count}, 2, onnx.Int("axis", 1))[1], last})
	boxes, scores = gather(boxes, anchors, 4), gather(scores, anchors, d.Classes)
	flat := d.Node("Reshape", name, []string{scores, d.Ints(name+".scores", 0, best*d.Classes)})
	chosen := d.Nodes("TopK", name+"/scores", []string{flat, count}, 2, onnx.Int("axis", 1))
	classes := d.Scalar(name+".classes", d.Classes)
	which := d.Node("Unsqueeze", name, []string{d.Node("Div", name, []string{chosen[1], classes}), last})
	class := d.Node("Cast", name, []string{d.Node("Mod", name, []string{chosen[1], classes})}, onnx.Int("to", int64(onnx.TensorProto_FLOAT)))
	d.Rename(d.concat(name, 2, gather(boxes, which, 4), d.Node("Unsqueeze", name, []string{chosen[0], last}),
		d.Node("Unsqueeze", name, []string{class, last})), "output0")
	d.Output("output0", d.batch(), best, 6)
	return d.described()
}

// described returns the finished model with the metadata of an export.
func (d detector) described() *onnx.Model {
	m := d.Model(d.Opset)
	names := make([]string, d.Classes)
	for i := range names {
		names[i] = fmt.Sprintf("%d: 'class%d'", i, i)
	}
	for _, p := range [][2]string{
		{"task", "detect"},
		{"stride", "32"},
		{"batch", "1"},
		{"imgsz", fmt.Sprintf("[%d, %d]", d.Size, d.Size)},
		{"names", "{" + strings.Join(names, ", ") + "}"},
	} {
		m.SetMetadata(p[0], p[1])
	}
	return m
}

func (y YOLO) start() (detector, string) {
	d := detector{Builder: NewBuilder(y.Seed), YOLO: y.filled()}
	return d, d.Input("images", d.batch(), 3, d.Size, d.Size)
}

// V8 builds YOLOv8n: C2f blocks, SPPF, a path aggregation neck and an anchor-free head with distribution focal loss.
func (y YOLO) V8() *onnx.Model {
	d, x := y.start()
	w := d.Wide
	x = d.cbs("/model.1", d.cbs("/model.0", x, 3, w, 3, 2), w, 2*w, 3, 2)
	x = d.c2f("/model.2", x, 2*w, 2*w, 1, true)
	p3 := d.c2f("/model.4", d.cbs("/model.3", x, 2*w, 4*w, 3, 2), 4*w, 4*w, 2, true)
	p4 := d.c2f("/model.6", d.cbs("/model.5", p3, 4*w, 8*w, 3, 2), 8*w, 8*w, 2, true)
	x = d.c2f("/model.8", d.cbs("/model.7", p4, 8*w, 16*w, 3, 2), 16*w, 16*w, 1, true)
	p5 := d.sppf("/model.9", x, 16*w)
	n4 := d.c2f("/model.12", d.concat("/model.11", 1, d.upsample("/model.10", p5), p4), 24*w, 8*w, 1, false)
	n3 := d.c2f("/model.15", d.concat("/model.14", 1, d.upsample("/model.13", n4), p3), 12*w, 4*w, 1, false)
	m4 := d.c2f("/model.18", d.concat("/model.17", 1, d.cbs("/model.16", n3, 4*w, 4*w, 3, 2), n4), 12*w, 8*w, 1, false)
	m5 := d.c2f("/model.21", d.concat("/model.20", 1, d.cbs("/model.19", m4, 8*w, 8*w, 3, 2), p5), 24*w, 16*w, 1, false)
	return d.detect("/model.22", [3]string{n3, m4, m5}, [3]int64{4 * w, 8 * w, 16 * w}, false)
}

// V10 builds YOLOv10n: separated downsampling, the attention block, inverted blocks at the end and a head without NMS.
func (y YOLO) V10() *onnx.Model {
	d, x := y.start()
	w := d.Wide
	x = d.cbs("/model.1", d.cbs("/model.0", x, 3, w, 3, 2), w, 2*w, 3, 2)
	x = d.c2f("/model.2", x, 2*w, 2*w, 1, true)
	p3 := d.c2f("/model.4", d.cbs("/model.3", x, 2*w, 4*w, 3, 2), 4*w, 4*w, 2, true)
	p4 := d.c2f("/model.6", d.scdown("/model.5", p3, 4*w, 8*w), 8*w, 8*w, 2, true)
	x = d.c2f("/model.8", d.scdown("/model.7", p4, 8*w, 16*w), 16*w, 16*w, 1, true)
	p5 := d.c2psa("/model.10", d.sppf("/model.9", x, 16*w), 16*w, d.Size/32)
	n4 := d.c2f("/model.13", d.concat("/model.12", 1, d.upsample("/model.11", p5), p4), 24*w, 8*w, 1, false)
	n3 := d.c2f("/model.16", d.concat("/model.15", 1, d.upsample("/model.14", n4), p3), 12*w, 4*w, 1, false)
	m4 := d.c2f("/model.19", d.concat("/model.18", 1, d.cbs("/model.17", n3, 4*w, 4*w, 3, 2), n4), 12*w, 8*w, 1, false)
	m5 := d.c2fcib("/model.22", d.concat("/model.21", 1, d.scdown("/model.20", m4, 8*w, 8*w), p5), 24*w, 16*w)
	return d.endToEnd("/model.23", [3]string{n3, m4, m5}, [3]int64{4 * w, 8 * w, 16 * w}, true)
}

// V11 builds YOLO11n: C3k2 blocks, SPPF, the C2PSA attention block and a head with depthwise class branches.
func (y YOLO) V11() *onnx.Model {
	d, x := y.start()
	w := d.Wide
	x = d.cbs("/model.1", d.cbs("/model.0", x, 3, w, 3, 2), w, 2*w, 3, 2)
	x = d.c3k2("/model.2", x, 2*w, 4*w, false, 0.25)
	p3 := d.c3k2("/model.4", d.cbs("/model.3", x, 4*w, 4*w, 3, 2), 4*w, 8*w, false, 0.25)
	p4 := d.c3k2("/model.6", d.cbs("/model.5", p3, 8*w, 8*w, 3, 2), 8*w, 8*w, true, 0.5)
	x = d.c3k2("/model.8", d.cbs("/model.7", p4, 8*w, 16*w, 3, 2), 16*w, 16*w, true, 0.5)
	p5 := d.c2psa("/model.10", d.sppf("/model.9", x, 16*w), 16*w, d.Size/32)
	n4 := d.c3k2("/model.13", d.concat("/model.12", 1, d.upsample("/model.11", p5), p4), 24*w, 8*w, false, 0.5)
	n3 := d.c3k2("/model.16", d.concat("/model.15", 1, d.upsample("/model.14", n4), p3), 16*w, 4*w, false, 0.5)
	m4 := d.c3k2("/model.19", d.concat("/model.18", 1, d.cbs("/model.17", n3, 4*w, 4*w, 3, 2), n4), 12*w, 8*w, false, 0.5)
	m5 := d.c3k2("/model.22", d.concat("/model.21", 1, d.cbs("/model.20", m4, 8*w, 8*w, 3, 2), p5), 24*w, 16*w, true, 0.5)
	return d.detect("/model.23", [3]string{n3, m4, m5}, [3]int64{4 * w, 8 * w, 16 * w}, true)
}
