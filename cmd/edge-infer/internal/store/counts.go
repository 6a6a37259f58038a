package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/history"
)

var _ history.Store = (*Store)(nil)

// measure is one number of history.Counts, in a row of its own.
type measure struct {
	name string
	get  func(c *history.Counts, add func(name string, value float64))
	set  func(c *history.Counts, name string, value float64)
}

// measures are all numbers of history.Counts.
func measures() []measure {
	ofZone := func(name string, get func(*history.Zone) float64, set func(*history.Zone, float64)) measure {
		return measure{
			name: name,
			get: func(c *history.Counts, add func(string, float64)) {
				for zone, z := range c.Zones {
					add(zone, get(z))
				}
			},
			set: func(c *history.Counts, zone string, value float64) { set(history.Entry(c.Zones, zone), value) },
		}
	}
	ofLine := func(name string, field func(*history.Line) *int) measure {
		return measure{
			name: name,
			get: func(c *history.Counts, add func(string, float64)) {
				for line, l := range c.Lines {
					add(line, float64(*field(l)))
				}
			},
			set: func(c *history.Counts, line string, value float64) {
				*field(history.Entry(c.Lines, line)) += int(value)
			},
		}
	}
	ofWay := func(name string, get func(*history.Way) float64, set func(*history.Way, float64)) measure {
		return measure{
			name: name,
			get:  func(c *history.Counts, add func(string, float64)) { add("", get(&c.Way)) },
			set:  func(c *history.Counts, _ string, value float64) { set(&c.Way, value) },
		}
	}
	return []measure{
		{
			name: "objects",
			get: func(c *history.Counts, add func(string, float64)) {
				for label, n := range c.Objects {
					add(label, float64(n))
				}
			},
			set: func(c *history.Counts, label string, value float64) { c.Objects[label] += int(value) },
		},
		ofZone("entered", func(z *history.Zone) float64 { return float64(z.Entered) }, func(z *history.Zone, v float64) { z.Entered += int(v) }),
		ofZone("visits", func(z *history.Zone) float64 { return float64(z.Visits) }, func(z *history.Zone, v float64) { z.Visits += int(v) }),
		ofZone("dwell_s", func(z *history.Zone) float64 { return z.Dwell }, func(z *history.Zone, v float64) { z.Dwell += v }),
		ofLine("in", func(l *history.Line) *int { return &l.In }),
		ofLine("out", func(l *history.Line) *int { return &l.Out }),
		ofWay("moved", func(w *history.Way) float64 { return float64(w.Objects) }, func(w *history.Way, v float64) { w.Objects += int(v) }),
		ofWay("distance_m", func(w *history.Way) float64 { return w.Distance }, func(w *history.Way, v float64) { w.Distance += v }),
		ofWay("moved_s", func(w *history.Way) float64 { return w.Time }, func(w *history.Way, v float64) { w.Time += v }),
	}
}

// AddCounts implements history.Store.
func (s *Store) AddCounts(ctx context.Context, minutes []history.Minute, heat []history.DayHeat) error {
	return s.change(ctx, func() error {
		all := measures()
		for _, m := range minutes {
			for i := range all {
				if err := s.writer.addMeasure(&all[i], &m); err != nil {
					return err
				}
			}
		}
		for i := range heat {
			if err := s.writer.addHeat(&heat[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *writer) addMeasure(of *measure, m *history.Minute) (err error) {
	of.get(m.Counts, func(name string, value float64) {
		if value == 0 || err != nil {
			return
		}
		_, err = w.db.exec(`INSERT INTO counts (camera, minute, measure, name, value) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET value = value + excluded.value`, m.Camera, m.Minute, of.name, name, value)
	})
	return err
}

func (w *writer) addHeat(part *history.DayHeat) error {
	var encoded []byte
	err := w.db.row(`SELECT seconds FROM heat WHERE camera = ? AND day = ?`, []any{part.Camera, part.Day}, &encoded)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	sum := decodeHeat(encoded)
	sum.Add(part.Heat)
	encoded = encoded[:0]
	for _, seconds := range sum {
		encoded = binary.LittleEndian.AppendUint32(encoded, math.Float32bits(seconds))
	}
	_, err = w.db.exec(`INSERT OR REPLACE INTO heat (camera, day, seconds) VALUES (?, ?, ?)`, part.Camera, part.Day, encoded)
	return err
}

// decodeHeat returns the heat map of a row: FP32, little-endian. One of another size is empty.
func decodeHeat(encoded []byte) *history.Heat {
	heat := new(history.Heat)
	if len(encoded) != 4*len(heat) {
		return heat
	}
	for i := range heat {
		heat[i] = math.Float32frombits(binary.LittleEndian.Uint32(encoded[4*i:]))
	}
	return heat
}

// Day implements history.Store. While there is no database, it returns an empty day: then counts are in memory.
func (s *Store) Day(ctx context.Context, camera, day string) (*history.Day, []string, error) {
	found := history.NewDay(camera, day)
	db, err := s.reader()
	if err != nil {
		return found, nil, nil //nolint:nilerr // the state of the store reports it
	}
	days, err := s.days(ctx, db, camera)
	if err != nil {
		return nil, nil, err
	}
	begin, err := time.ParseInLocation(time.DateOnly, day, time.Local)
	if err != nil {
		return found, days, nil //nolint:nilerr // there is no such day
	}
	rows, err := db.QueryContext(ctx, `SELECT minute, measure, name, value FROM counts WHERE camera = ? AND minute >= ? AND minute < ?`,
		camera, begin.Unix()/60, begin.AddDate(0, 0, 1).Unix()/60)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	set := map[string]func(*history.Counts, string, float64){}
	for _, m := range measures() {
		set[m.name] = m.set
	}
	for rows.Next() {
		var minute int64
		var measure, name string
		var value float64
		if err := rows.Scan(&minute, &measure, &name, &value); err != nil {
			return nil, nil, err
		}
		if add := set[measure]; add != nil {
			add(found.Hour(time.Unix(60*minute, 0).Local().Hour()), name, value)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, nil, err
	}
	var encoded []byte
	err = db.QueryRowContext(ctx, `SELECT seconds FROM heat WHERE camera = ? AND day = ?`, camera, day).Scan(&encoded)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, nil, err
	}
	found.Heat = decodeHeat(encoded)
	return found, days, nil
}

// days returns the stored days of a camera, oldest first.
func (s *Store) days(ctx context.Context, db *sql.DB, camera string) (days []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT day FROM heat WHERE camera = ? ORDER BY day`, camera)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var day string
		if err := rows.Scan(&day); err != nil {
			return nil, err
		}
		days = append(days, day)
	}
	return days, rows.Err()
}
