package head

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

const alphabet = "ABC123"

// line makes the steps of a reader: each letter of the text is a step, _ the blank. Logits differ by 8.
func line(text string, last, shares bool) (data []float32, shape []int64) {
	for _, letter := range text {
		class := len(alphabet)
		for i, known := range alphabet {
			if known == letter {
				class = i
			}
		}
		row := make([]float64, len(alphabet)+1)
		if !last {
			class = (class + 1) % len(row)
		}
		row[class] = 8
		total := 0.0
		for _, v := range row {
			total += math.Exp(v)
		}
		for _, v := range row {
			if shares {
				v = math.Exp(v) / total
			}
			data = append(data, float32(v))
		}
	}
	return data, []int64{1, int64(len(text)), int64(len(alphabet) + 1)}
}

func reader(t testing.TB, shape []int64, labels int, last bool) *Decoder {
	layout := LayoutCTC
	if last {
		layout = LayoutCTCBlankLast
	}
	model := described(labels, shape)
	d := openDecoder(t, model, Options{Layout: layout})
	require.Equal(t, engine.Read, d.Recognised().Task)
	return d
}

func spelt(found []postprocess.Detection) (text string) {
	for i := range found {
		text += string(alphabet[found[i].Class])
	}
	return text
}

// TestRead: equal steps are one character, a blank between them makes two, and the boxes stand in the order of reading.
func TestRead(t *testing.T) {
	for _, last := range []bool{false, true} {
		for _, shares := range []bool{false, true} {
			for steps, want := range map[string]string{
				"__AAB_B_1__": "ABB1", "AAAA": "A", "A_A_A": "AAA", "____": "", "123CBA": "123CBA", "_A": "A", "A_": "A",
			} {
				data, shape := line(steps, last, shares)
				d := reader(t, shape, len(alphabet), last)
				found, stats, err := d.Decode(result(identity, whole(data, shape)), 0, 640, 640, nil)
				require.NoError(t, err)
				require.Equal(t, want, spelt(found), steps)
				require.Equal(t, len(want), stats.Candidates)
				before := float32(0)
				for i := range found {
					require.GreaterOrEqual(t, found[i].X1, before)
					require.Greater(t, found[i].X2, found[i].X1)
					require.InDelta(t, 1, found[i].Score, 0.01)
					before = found[i].X2
				}
			}
		}
	}
}

// TestReadDoubts: a character that is unsure is left out, and numbers that are none are counted and part characters.
func TestReadDoubts(t *testing.T) {
	data, shape := line("AB", false, false)
	copy(data[7:], make([]float32, 7)) // every class of the second step is as likely
	d := reader(t, shape, len(alphabet), false)
	found, _, err := d.Decode(result(identity, whole(data, shape)), 0, 640, 640, nil)
	require.NoError(t, err)
	require.Equal(t, "A", spelt(found))

	data, shape = line("AAA", false, false)
	data[7] = float32(math.NaN())
	d = reader(t, shape, len(alphabet), false)
	found, stats, err := d.Decode(result(identity, whole(data, shape)), 0, 640, 640, nil)
	require.NoError(t, err)
	require.Equal(t, "AA", spelt(found))
	require.Equal(t, 1, stats.BadScores)

	// Labels that do not fit are refused; with one for the blank too they are taken as they are.
	model := described(len(alphabet)-1, shape)
	_, err = Recognise(model, LayoutCTC)
	require.ErrorContains(t, err, "7 classes but the model has 5 labels")
	d = reader(t, shape, len(alphabet)+1, false)
	found, _, err = d.Decode(result(identity, whole(data, shape)), 0, 640, 640, nil)
	require.NoError(t, err)
	require.Equal(t, 1, found[0].Class)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("__AAB_B_1__"), uint8(7), true)
	f.Fuzz(func(t *testing.T, bytes []byte, classes uint8, last bool) {
		width := int(max(classes, 2))
		steps := len(bytes) / width
		if steps == 0 {
			return
		}
		data := make([]float32, steps*width)
		for i := range data {
			data[i] = math.Float32frombits(uint32(bytes[i]) << 24)
		}
		shape := []int64{1, int64(steps), int64(width)}
		d := reader(t, shape, 0, last)
		found, _, err := d.Decode(result(identity, whole(data, shape)), 0, 640, 640, nil)
		require.NoError(t, err)
		require.LessOrEqual(t, len(found), steps)
		for i := range found {
			require.True(t, found[i].Score >= 0 && found[i].Score <= 1 && found[i].X1 <= found[i].X2)
			require.True(t, found[i].Class >= 0 && found[i].Class < width)
		}
	})
}
