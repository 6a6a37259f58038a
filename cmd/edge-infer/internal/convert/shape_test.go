package convert

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

func TestParseBatch(t *testing.T) {
	for _, test := range []struct {
		text string
		want tensorrt.Range
		err  string
	}{
		{"1,4,8", tensorrt.Range{Min: 1, Opt: 4, Max: 8}, ""},
		{"8", tensorrt.Range{Min: 1, Opt: 8, Max: 8}, ""},
		{"1,2", tensorrt.Range{}, `--batch "1,2" must be MIN,OPT,MAX like 1,4,8, or one number`},
		{"0", tensorrt.Range{}, `--batch "0" must be MIN,OPT,MAX like 1,4,8, or one number`},
		{"1,x,2", tensorrt.Range{}, `--batch "1,x,2" must be MIN,OPT,MAX like 1,4,8, or one number`},
		{"40000", tensorrt.Range{}, `--batch "40000" must be MIN,OPT,MAX like 1,4,8, or one number`},
		{"", tensorrt.Range{}, `--batch "" must be MIN,OPT,MAX like 1,4,8, or one number`},
		{"4,1,8", tensorrt.Range{}, `--batch "4,1,8" must have MIN <= OPT <= MAX`},
	} {
		got, err := parseBatch(test.text)
		if test.err != "" {
			assert.EqualError(t, err, test.err)
			continue
		}
		assert.NoError(t, err)
		assert.Equal(t, test.want, got)
	}
}

func TestParseShape(t *testing.T) {
	for _, test := range []struct {
		text string
		want tensorrt.ShapeRange
		err  string
	}{
		{
			"images=1x3x64x64,2x3x64x64,4x3x64x64", tensorrt.ShapeRange{
				Name: "images", Min: []int64{1, 3, 64, 64}, Opt: []int64{2, 3, 64, 64}, Max: []int64{4, 3, 64, 64},
			}, "",
		},
		{"a=b=5", tensorrt.ShapeRange{Name: "a=b", Min: []int64{5}, Opt: []int64{5}, Max: []int64{5}}, ""},
		{"images", tensorrt.ShapeRange{}, `--shape "images" must be NAME=MIN,OPT,MAX with shapes like 1x3x640x640`},
		{"=1x3", tensorrt.ShapeRange{}, `--shape "=1x3" must be NAME=MIN,OPT,MAX with shapes like 1x3x640x640`},
		{"i=1x3,2x3", tensorrt.ShapeRange{}, `--shape "i=1x3,2x3" must be NAME=MIN,OPT,MAX with shapes like 1x3x640x640`},
		{"i=1xx3", tensorrt.ShapeRange{}, `--shape "i=1xx3" must be NAME=MIN,OPT,MAX with shapes like 1x3x640x640`},
		{"i=-1x3", tensorrt.ShapeRange{}, `--shape "i=-1x3" must be NAME=MIN,OPT,MAX with shapes like 1x3x640x640`},
		{"i=1x3,2,4x3", tensorrt.ShapeRange{}, `--shape "i=1x3,2,4x3": MIN, OPT and MAX must have the same number of dimensions`},
		{"i=2x3,1x3,4x3", tensorrt.ShapeRange{}, `--shape "i=2x3,1x3,4x3": dimension 0 must have MIN <= OPT <= MAX`},
	} {
		got, err := parseShape(test.text)
		if test.err != "" {
			assert.EqualError(t, err, test.err)
			continue
		}
		assert.NoError(t, err)
		assert.Equal(t, test.want, got)
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"1GiB": 1 << 30, "512MiB": 512 << 20, "3KiB": 3072, "77": 77} {
		got, err := parseBytes(text)
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "GiB", "0", "-1", "1GB", "1.5GiB", "9223372036854775807KiB"} {
		_, err := parseBytes(text)
		assert.EqualError(t, err, `--workspace "`+text+`" must be a size like 1GiB, 512MiB or a number of bytes`)
	}
}
