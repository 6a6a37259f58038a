package track

// Affine maps a point of one image to another: x' = A*x + B*y + C, y' = D*x + E*y + F, in pixels.
type Affine struct{ A, B, C, D, E, F float64 }

func (m *Affine) point(x, y float32) (float32, float32) {
	return float32(m.A*float64(x) + m.B*float64(y) + m.C), float32(m.D*float64(x) + m.E*float64(y) + m.F)
}

func (m *Affine) direction(x, y float32) (float32, float32) {
	return float32(m.A*float64(x) + m.B*float64(y)), float32(m.D*float64(x) + m.E*float64(y))
}

// CompensateMotion applies the motion of the background between the images of the last and the next Update, when the camera has turned or
// shaken: all tracks are transformed, as in BoT-SORT (Aharon et al., 2022). Call it before Update. Boxes stay upright.
func (t *Tracker) CompensateMotion(m Affine) {
	t.motionKnown = true
	for i := range t.objects {
		o := &t.objects[i]
		o.motion.transform(&m)
		o.occluded.transform(&m)
		o.unoccluded.vx, o.unoccluded.vy = m.direction(o.unoccluded.vx, o.unoccluded.vy)
		o.unoccluded.width *= float32(m.A)
		o.unoccluded.height *= float32(m.E)
		o.appearance.transform(&m)
		o.mismatch.transform(&m)
	}
	for i := range t.ended {
		g := &t.ended[i]
		g.appearance.transform(&m)
		g.VX, g.VY = m.direction(g.VX, g.VY)
	}
}

// transform moves the box of the last embedding.
func (l *appearance) transform(m *Affine) {
	l.box.X1, l.box.Y1 = m.point(l.box.X1, l.box.Y1)
	l.box.X2, l.box.Y2 = m.point(l.box.X2, l.box.Y2)
}

func (q *kalmanBox) transform(m *Affine) {
	q.x.position, q.y.position = m.point(q.x.position, q.y.position)
	q.x.velocity, q.y.velocity = m.direction(q.x.velocity, q.y.velocity)
	q.width.position, q.width.velocity = float32(m.A)*q.width.position, float32(m.A)*q.width.velocity
	q.height.position, q.height.velocity = float32(m.E)*q.height.position, float32(m.E)*q.height.velocity
}
