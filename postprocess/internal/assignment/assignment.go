// Package assignment pairs rows with columns so that the sum of the weights is maximal: detections with tracks, tracks with ground truth.
package assignment

import "math"

// Solver holds the scratch memory of Maximize; the zero value is ready. It allocates nothing once it has seen the largest problem. One
// goroutine at a time may use it.
type Solver struct {
	result          []int32 // by row
	parent          []int32 // union-find over rows, then columns
	order, start    []int32 // nodes sorted by component, and the start of each component
	rows, columns   []int32 // of one component
	u, v, shortest  []float64
	match, previous []int32
	visited         []bool
}

// Maximize returns the column of each row, -1 for none, in memory that is valid until the next call. weights is rows x columns, row by row;
// pairs without a positive weight are never made. The problem is split into components that no positive weight connects, and each is solved
// by the Hungarian method with shortest augmenting paths, O(n^2 m) for n <= m.
func (s *Solver) Maximize(weights []float64, rows, columns int) []int32 {
	s.result = resize(s.result, rows)
	for i := range s.result {
		s.result[i] = -1
	}
	if rows == 0 || columns == 0 {
		return s.result
	}
	s.split(weights, rows, columns)
	for c := 0; c+1 < len(s.start); c++ {
		s.rows, s.columns = s.rows[:0], s.columns[:0]
		for _, node := range s.order[s.start[c]:s.start[c+1]] {
			if int(node) < rows {
				s.rows = append(s.rows, node)
			} else {
				s.columns = append(s.columns, node-int32(rows))
			}
		}
		switch {
		case len(s.rows) == 0 || len(s.columns) == 0:
		case len(s.rows) == 1 && len(s.columns) == 1:
			s.result[s.rows[0]] = s.columns[0]
		default:
			s.solve(weights, columns)
		}
	}
	return s.result
}

func resize[T any](slice []T, length int) []T {
	if cap(slice) < length {
		return make([]T, length)
	}
	return slice[:length]
}

func (s *Solver) find(node int32) int32 {
	for s.parent[node] != node {
		s.parent[node] = s.parent[s.parent[node]]
		node = s.parent[node]
	}
	return node
}

// split sorts rows and columns by connected component.
func (s *Solver) split(weights []float64, rows, columns int) {
	nodes := rows + columns
	s.parent = resize(s.parent, nodes)
	for i := range s.parent {
		s.parent[i] = int32(i)
	}
	for r := range rows {
		for c, w := range weights[r*columns : (r+1)*columns] {
			if w > 0 {
				a, b := s.find(int32(r)), s.find(int32(rows+c))
				// The smaller number leads, so that components are in the order of their first row.
				s.parent[max(a, b)] = min(a, b)
			}
		}
	}
	// A counting sort by leader: previous holds how many nodes come before each leader's.
	s.order, s.previous = resize(s.order, nodes), resize(s.previous, nodes+1)
	clear(s.previous)
	for i := range nodes {
		s.previous[s.find(int32(i))+1]++
	}
	s.start = append(s.start[:0], 0)
	for i := range nodes {
		if s.previous[i+1] > 0 {
			s.start = append(s.start, s.previous[i]+s.previous[i+1])
		}
		s.previous[i+1] += s.previous[i]
	}
	for i := range nodes {
		leader := s.find(int32(i))
		s.order[s.previous[leader]] = int32(i)
		s.previous[leader]++
	}
}

// solve pairs s.rows with s.columns. The smaller side is augmented; potentials u and v keep all reduced costs at 0 or above, and index 0 is
// the free node of the search.
func (s *Solver) solve(weights []float64, stride int) {
	few, many, swapped := s.rows, s.columns, false
	if len(few) > len(many) {
		few, many, swapped = many, few, true
	}
	cost := func(i, j int32) float64 {
		r, c := few[i-1], many[j-1]
		if swapped {
			r, c = c, r
		}
		return -max(weights[int(r)*stride+int(c)], 0)
	}
	n, m := len(few), len(many)
	s.u, s.v, s.shortest = resize(s.u, n+1), resize(s.v, m+1), resize(s.shortest, m+1)
	s.match, s.previous, s.visited = resize(s.match, m+1), resize(s.previous, m+1), resize(s.visited, m+1)
	clear(s.u)
	clear(s.v)
	clear(s.match)
	for i := int32(1); i <= int32(n); i++ {
		s.match[0] = i
		for j := range s.shortest {
			s.shortest[j], s.visited[j] = math.Inf(1), false
		}
		at := int32(0)
		for {
			s.visited[at] = true
			row, step, next := s.match[at], math.Inf(1), int32(0)
			for j := int32(1); j <= int32(m); j++ {
				if s.visited[j] {
					continue
				}
				if reduced := cost(row, j) - s.u[row] - s.v[j]; reduced < s.shortest[j] {
					s.shortest[j], s.previous[j] = reduced, at
				}
				if s.shortest[j] < step {
					step, next = s.shortest[j], j
				}
			}
			for j := range s.visited {
				if s.visited[j] {
					s.u[s.match[j]] += step
					s.v[j] -= step
				} else {
					s.shortest[j] -= step
				}
			}
			at = next
			if s.match[at] == 0 {
				break
			}
		}
		for at != 0 {
			s.match[at] = s.match[s.previous[at]]
			at = s.previous[at]
		}
	}
	for j := int32(1); j <= int32(m); j++ {
		if i := s.match[j]; i != 0 && cost(i, j) < 0 {
			r, c := few[i-1], many[j-1]
			if swapped {
				r, c = c, r
			}
			s.result[r] = c
		}
	}
}
