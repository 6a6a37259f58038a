package track

import "github.com/edge-infer/edge-infer/postprocess"

// step is the time unit of the noise constants: the frame of a 30 Hz camera, in seconds.
const step = 1.0 / 30

// Noise of the constant-velocity model per step as shares of the box's side. Positions and detections are noisier than with SORT and
// ByteTrack (1/20), which detectors exceed on real videos; velocities (1/160) are not. These and the factors of a new object were chosen on
// one half of the real sequences of cmd/track-benchmark.
const (
	positionNoise    = 1.0 / 16
	velocityNoise    = 1.0 / 160
	measurementNoise = 1.0 / 10
	startPosition    = 3  // of positionNoise
	startVelocity    = 15 // of velocityNoise
)

// scoreNoise scales the measurement noise with 1 - score, after the noise scale adaptive (NSA) Kalman filter of GIAOTracker (Du et al.,
// 2021): boxes of partly hidden objects are less accurate.
const scoreNoise = 1

// kalmanAxis is a Kalman filter over one coordinate and its velocity. The noise does not couple a box's coordinates, so four of these are
// equivalent to the usual eight-dimensional filter.
type kalmanAxis struct {
	position, velocity      float32 // pixels, pixels per step
	variance, covariance, w float32 // of the position, of both, of the velocity
}

func (a *kalmanAxis) start(position, side float32) {
	*a = kalmanAxis{
		position: position, variance: square(startPosition * positionNoise * side), w: square(startVelocity * velocityNoise * side),
	}
}

func (a *kalmanAxis) predict(steps, side float32) {
	a.position += a.velocity * steps
	a.variance += steps*(2*a.covariance+steps*a.w) + steps*square(positionNoise*side)
	a.covariance += steps * a.w
	a.w += steps * square(velocityNoise*side)
}

func (a *kalmanAxis) update(measured, side float32) {
	total := a.variance + square(measurementNoise*side)
	if total <= 0 {
		return
	}
	k, kv := a.variance/total, a.covariance/total
	residual := measured - a.position
	a.position += k * residual
	a.velocity += kv * residual
	a.w -= kv * a.covariance
	a.covariance *= 1 - k
	a.variance *= 1 - k
}

func square(v float32) float32 { return v * v }

// kalmanBox estimates position, size and velocity of a box.
type kalmanBox struct {
	x, y, width, height kalmanAxis // centre and sides
}

func (m *kalmanBox) start(b postprocess.Box) {
	w, h := b.Width(), b.Height()
	m.x.start((b.X1+b.X2)/2, w)
	m.y.start((b.Y1+b.Y2)/2, h)
	m.width.start(w, w)
	m.height.start(h, h)
}

// predict advances the box without changing its size: reported changes of the size are mostly noise.
func (m *kalmanBox) predict(steps float32) {
	m.width.velocity, m.height.velocity = 0, 0
	w, h := max(m.width.position, 1), max(m.height.position, 1)
	m.x.predict(steps, w)
	m.y.predict(steps, h)
	m.width.predict(steps, w)
	m.height.predict(steps, h)
	m.width.position, m.height.position = max(m.width.position, 1), max(m.height.position, 1)
}

// update corrects the estimate with a detection and its score.
func (m *kalmanBox) update(b postprocess.Box, score float32) {
	noise := 1 + scoreNoise*max(0, 1-score)
	w, h := noise*m.width.position, noise*m.height.position
	m.x.update((b.X1+b.X2)/2, w)
	m.y.update((b.Y1+b.Y2)/2, h)
	m.width.update(b.Width(), w)
	m.height.update(b.Height(), h)
}

func (m *kalmanBox) shift(x, y float32) {
	m.x.position += x
	m.y.position += y
}

func (m *kalmanBox) box() postprocess.Box {
	x, y := m.x.position, m.y.position
	w, h := m.width.position/2, m.height.position/2
	return postprocess.Box{X1: x - w, Y1: y - h, X2: x + w, Y2: y + h}
}
