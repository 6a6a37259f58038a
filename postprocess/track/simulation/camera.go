package simulation

import (
	"math"
	"math/rand/v2"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/track"
)

// Of the camera: focal length in pixels, height in metres above the ground, tilt in radians below the horizon.
const (
	focal = 1150.0
	mast  = 3.6
	tilt  = 0.19
)

// camera stands on its mast and faces along z. rows are its axes in the world: right, down, forward.
type camera struct{ rows [3][3]float64 }

func newCamera(yaw, pitch, roll float64) camera {
	sy, cy := math.Sincos(yaw)
	sp, cp := math.Sincos(tilt + pitch)
	sr, cr := math.Sincos(roll)
	right, down, forward := [3]float64{cy, 0, -sy}, [3]float64{-sy * sp, cp, -cy * sp}, [3]float64{sy * cp, sp, cy * cp}
	var c camera
	for i := range 3 {
		c.rows[0][i] = cr*right[i] + sr*down[i]
		c.rows[1][i] = cr*down[i] - sr*right[i]
		c.rows[2][i] = forward[i]
	}
	return c
}

// project projects a direction; y is down.
func (c *camera) project(x, y, z float64) (u, v, depth float64) {
	depth = c.rows[2][0]*x + c.rows[2][1]*y + c.rows[2][2]*z
	u = Width/2 + focal*(c.rows[0][0]*x+c.rows[0][1]*y+c.rows[0][2]*z)/depth
	v = Height/2 + focal*(c.rows[1][0]*x+c.rows[1][1]*y+c.rows[1][2]*z)/depth
	return u, v, depth
}

// ray returns the direction of a pixel.
func (c *camera) ray(u, v float64) (x, y, z float64) {
	a, b := (u-Width/2)/focal, (v-Height/2)/focal
	return a*c.rows[0][0] + b*c.rows[1][0] + c.rows[2][0],
		a*c.rows[0][1] + b*c.rows[1][1] + c.rows[2][1],
		a*c.rows[0][2] + b*c.rows[1][2] + c.rows[2][2]
}

// projectBox returns the box of an upright object on the ground.
func (c *camera) projectBox(x, z, width, height float64) (postprocess.Box, float64, bool) {
	u, foot, depth := c.project(x, mast, z)
	_, head, _ := c.project(x, mast-height, z)
	if depth < 1 {
		return postprocess.Box{}, 0, false
	}
	half := focal * width / 2 / depth
	box := postprocess.Box{X1: float32(u - half), Y1: float32(head), X2: float32(u + half), Y2: float32(foot)}
	return box, depth, box.X2 > 0 && box.Y2 > 0 && box.X1 < Width && box.Y1 < Height
}

// motionSince fits the affine map closest to the rotation between two cameras, over the lower three quarters of the image.
func (c *camera) motionSince(before camera) track.Affine {
	var n, sx, sy, sxx, sxy, syy float64
	var u, ux, uy, v, vx, vy float64
	for y := float64(Height / 4); y <= Height; y += Height / 8 {
		for x := 0.0; x <= Width; x += Width / 8 {
			a, b, _ := c.project(before.ray(x, y))
			n++
			sx += x
			sy += y
			sxx += x * x
			sxy += x * y
			syy += y * y
			u, ux, uy = u+a, ux+a*x, uy+a*y
			v, vx, vy = v+b, vx+b*x, vy+b*y
		}
	}
	m := [3][3]float64{{sxx, sxy, sx}, {sxy, syy, sy}, {sx, sy, n}}
	a, d := solve(m, [3]float64{ux, uy, u}), solve(m, [3]float64{vx, vy, v})
	return track.Affine{A: a[0], B: a[1], C: a[2], D: d[0], E: d[1], F: d[2]}
}

// solve solves a linear system by Cramer's rule.
func solve(m [3][3]float64, b [3]float64) (x [3]float64) {
	whole := determinant(m)
	for i := range 3 {
		part := m
		for j := range 3 {
			part[j][i] = b[j]
		}
		x[i] = determinant(part) / whole
	}
	return x
}

func determinant(m [3][3]float64) float64 {
	return m[0][0]*(m[1][1]*m[2][2]-m[1][2]*m[2][1]) - m[0][1]*(m[1][0]*m[2][2]-m[1][2]*m[2][0]) +
		m[0][2]*(m[1][0]*m[2][1]-m[1][1]*m[2][0])
}

// cameraMount moves the camera.
type cameraMount struct {
	random           *rand.Rand
	scene            Scene
	at               float64
	yaw, speed, aim  float64
	holds            float64    // seconds until the next turn
	swing, swingPace [3]float64 // yaw, pitch, roll in the wind
}

func newMount(random *rand.Rand, s Scene) *cameraMount {
	return &cameraMount{random: random, scene: s, holds: 1}
}

func (m *cameraMount) step() {
	const (
		fastest, ramp = 0.35, 1.2 // radians a second, a second squared
		reach         = 0.3       // radians to either side
	)
	m.at += tick
	if m.scene.Pan {
		m.holds -= tick
		if m.holds < 0 && m.holds+tick >= 0 {
			m.aim = (2*m.random.Float64() - 1) * reach
		}
		way := m.aim - m.yaw
		wanted := math.Copysign(min(fastest, math.Sqrt(2*ramp*math.Abs(way))), way)
		m.speed += max(-ramp*tick, min(ramp*tick, wanted-m.speed))
		m.yaw += m.speed * tick
		if m.holds < 0 && math.Abs(way) < 0.01 && math.Abs(m.speed) < 0.1 {
			m.speed, m.holds = 0, 0.5+m.random.Float64()
			m.aim = m.yaw
		}
	}
	if m.scene.Shake {
		// A damped pendulum of 4 Hz per axis, driven by gusts.
		stiff, damp := square4Hz, 3.0
		for i, gust := range [3]float64{0.4, 0.3, 0.12} {
			m.swingPace[i] += tick*(-stiff*m.swing[i]-damp*m.swingPace[i]) + math.Sqrt(tick)*gust*m.random.NormFloat64()
			m.swing[i] += tick * m.swingPace[i]
		}
	}
}

// square4Hz is the stiffness of a pendulum of 4 Hz.
const square4Hz = (2 * math.Pi * 4) * (2 * math.Pi * 4)

func (m *cameraMount) camera() camera {
	return newCamera(m.yaw+m.swing[0], m.swing[1], m.swing[2])
}
