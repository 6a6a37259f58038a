package bench

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// raw feeds a network with random tensors, one request at a time.
type raw struct {
	network *predict.Raw
	inputs  []engine.Tensor
	result  *engine.Result
	err     error
}

func (*raw) slots() int { return 1 }

func (r *raw) submit(int) error {
	r.result, r.err = r.network.Tensors(r.inputs...)
	return r.err
}

func (r *raw) wait(int) (engine.Timing, int, error) { return r.result.Timing, 0, nil }

// shapes parses --shape: NAME=1,3,224,224.
func shapes(texts []string) (map[string][]int64, error) {
	all := map[string][]int64{}
	for _, text := range texts {
		name, sides, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, config.Usagef("--shape %q: must be NAME=1,3,224,224", text)
		}
		for side := range strings.SplitSeq(sides, ",") {
			n, err := strconv.ParseInt(strings.TrimSpace(side), 10, 32)
			if err != nil || n < 1 {
				return nil, config.Usagef("--shape %q: sides are numbers from 1, separated by commas", text)
			}
			all[name] = append(all[name], n)
		}
	}
	return all, nil
}

// shaped sets the named shapes, and the batch where only that is dynamic.
func shaped(inputs []engine.TensorInfo, named map[string][]int64, batch int) ([]engine.TensorInfo, error) {
	all := make([]engine.TensorInfo, len(inputs))
	used := 0
	for i, input := range inputs {
		all[i] = engine.TensorInfo{Name: input.Name, Type: input.Type, Shape: append([]int64{}, input.Shape...)}
		if given, ok := named[input.Name]; ok {
			all[i].Shape = given
			used++
			continue
		}
		for d, n := range all[i].Shape {
			switch {
			case n >= 0:
			case d == 0:
				all[i].Shape[d] = int64(batch)
			default:
				return nil, config.Usagef("input %q leaves side %d open: specify its size, as in --shape %s=%s", input.Name, d+1, input.Name,
					example(input.Shape, batch))
			}
		}
	}
	if used < len(named) {
		return nil, config.Usagef("--shape: the model has no such input (it has %s)", names(inputs))
	}
	return all, nil
}

// example returns a possible shape of an input with dynamic dimensions.
func example(shape []int64, batch int) string {
	var sides []string
	for d, n := range shape {
		switch {
		case n >= 0:
		case d == 0:
			n = int64(batch)
		default:
			n = 64
		}
		sides = append(sides, strconv.FormatInt(n, 10))
	}
	return strings.Join(sides, ",")
}

func names(inputs []engine.TensorInfo) string {
	var all []string
	for _, input := range inputs {
		all = append(all, input.Name)
	}
	return strings.Join(all, ", ")
}

// random returns tensors with normally distributed numbers, or 0 and 1 for integers, which are valid indices of any table.
func random(inputs []engine.TensorInfo) []engine.Tensor {
	source := rand.New(rand.NewPCG(1, 1))
	all := make([]engine.Tensor, len(inputs))
	for i, input := range inputs {
		n := int(engine.Elements(input.Shape))
		size := input.Type.Size()
		t := engine.Tensor{Name: input.Name, Type: input.Type, Shape: input.Shape, Data: make([]byte, n*size)}
		for at := 0; at < len(t.Data); at += size {
			element := t.Data[at : at+size]
			switch input.Type {
			case engine.Float32:
				binary.LittleEndian.PutUint32(element, math.Float32bits(float32(source.NormFloat64())))
			case engine.Float16: // 0.5 to 2, of either sign
				binary.LittleEndian.PutUint16(element, uint16(0x3800+source.IntN(0x0800))|uint16(source.IntN(2))<<15)
			default:
				element[0] = byte(source.IntN(2))
			}
		}
		all[i] = t
	}
	return all
}
