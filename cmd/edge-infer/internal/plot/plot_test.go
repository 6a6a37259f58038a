package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValues(t *testing.T) {
	for _, c := range []struct {
		largest float64
		want    string
	}{
		{1, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{0, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{4.7, "0 1 2 3 4 5"},
		{0.00123, "0.0000 0.0005 0.0010 0.0015"},
		{61, "0 20 40 60 80"},
		{9999, "0 2000 4000 6000 8000 10000"},
		{12001, "0 5000 10000 15000"},
	} {
		var labels []string
		for _, tick := range Values("ms", c.largest).Ticks {
			labels = append(labels, tick.Label)
		}
		require.Equal(t, c.want, strings.Join(labels, " "), c.largest)
	}
}

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0.000", 0.0456: "0.046", 0.9999: "1.00", 9.999: "10.0", 12.34: "12.3", 99.99: "100", 123456.7: "123457",
	} {
		require.Equal(t, want, Number(value), value)
	}
}

// Many long names, and characters that mean something in XML, give well-formed files whose texts stay inside.
func TestFiguresOfManyNames(t *testing.T) {
	chart := &Chart{Title: strings.Repeat("long ", 60), X: Categories("batch size", []string{"1"}), Y: Values("ms", 3), Columns: []string{"a"}}
	matrix := &Matrix{Title: "m", Rows: "labelled as", Columns: "detected as"}
	for i := range 81 {
		name := fmt.Sprintf("<%d> & \"name\" \x01 %s", i, strings.Repeat("x", i))
		chart.Lines = append(chart.Lines, Line{Name: name, X: []float64{0}, Y: []float64{3}, Color: i, Dots: true, Values: []string{"3.00"}})
		matrix.Names = append(matrix.Names, name)
		matrix.Counts = append(matrix.Counts, make([]int, 81))
	}
	for _, drawing := range []Drawing{chart, matrix} {
		for _, f := range formats() {
			var file bytes.Buffer
			require.NoError(t, drawing.render(f, &file))
			if f.suffix == ".png" {
				_, err := png.Decode(&file)
				require.NoError(t, err)
				continue
			}
			decoder := xml.NewDecoder(&file)
			for {
				_, err := decoder.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
			}
		}
	}
}
