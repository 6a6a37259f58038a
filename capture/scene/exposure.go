package scene

import (
	"encoding/binary"
	"math"
)

// exposure simulates the camera: brightness that varies over image and time, and sensor noise. Both are applied to eight bytes at a time:
// the image is scaled to leave room for the noise, so that no byte carries into its neighbour.
type exposure struct {
	width, height int
	noise         []uint64 // eight noise bytes per word, each 0 to 2*floor
	floor         int      // largest noise, and the black level
	vignette      float64
	columns, rows []float32 // factors on the gain
}

const gainRows = 4 // rows that share a gain

func newExposure(width, height, words int, sigma, vignette float64, seed uint64) exposure {
	e := exposure{width: width, height: height, vignette: vignette, floor: int(math.Ceil(2.2 * sigma))}
	e.noise = make([]uint64, max(words, 2*((3*width+7)/8)))
	r := seeded(seed, 7)
	for i := range e.noise {
		for b := range 8 {
			v := math.Round(sigma * r.normal())
			v = math.Min(float64(e.floor), math.Max(-float64(e.floor), v)) + float64(e.floor)
			e.noise[i] |= uint64(v) << (8 * b)
		}
	}
	e.columns = make([]float32, (3*width+7)/8)
	e.rows = make([]float32, (height+gainRows-1)/gainRows)
	return e
}

// develop applies brightness gain (1 for the rendered brightness) and noise. The image may only get darker: gains over 1 are clamped. drift
// moves a soft pool of light along the belt, in radians.
func (e *exposure) develop(dst []byte, stride int, gain, drift float64, seed random) {
	top := float64(255-2*e.floor) / 255 * 256
	for i := range e.columns {
		x := 2*float64(i)/float64(len(e.columns)) - 1
		e.columns[i] = float32((1 - e.vignette*x*x) * (1 + 0.07*math.Sin(3*x+drift)))
	}
	for i := range e.rows {
		y := 2*float64(i)/float64(len(e.rows)) - 1
		e.rows[i] = float32(gain * (1 - e.vignette*y*y) * top)
	}
	const lanes = 0x00ff00ff00ff00ff
	words := 3 * e.width / 8
	for y := range e.height {
		row := dst[y*stride:][:3*e.width]
		noise := e.noise[seed.intn(len(e.noise)-len(e.columns)+1):][:len(e.columns)]
		factor, columns := e.rows[y/gainRows], e.columns
		for i := range words {
			g := uint64(min(float32(top), factor*columns[i]))
			px := row[8*i:][:8:8]
			v := binary.LittleEndian.Uint64(px)
			even := (v & lanes) * g >> 8 & lanes
			odd := (v >> 8 & lanes) * g &^ lanes
			binary.LittleEndian.PutUint64(px, (even|odd)+noise[i])
		}
		for i := 8 * words; i < len(row); i++ {
			g := uint32(min(float32(top), factor*columns[words]))
			row[i] = byte(uint32(row[i])*g>>8) + byte(noise[words]>>(8*(i%8)))
		}
	}
}
