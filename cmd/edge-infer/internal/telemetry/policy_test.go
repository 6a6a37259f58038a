package telemetry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPolicy(t *testing.T) {
	type step struct {
		seconds int
		celsius float64
		want    int
	}
	for _, test := range []struct {
		name   string
		policy Policy
		limit  float64
		steps  []step
	}{
		{"off", Policy{}, 99, []step{{0, 120, 1}, {60, 120, 1}}},
		{
			"doubles up to eight and comes back in steps",
			Policy{Margin: 10, Hysteresis: 5},
			99,
			[]step{
				{0, 80, 1},
				{5, 89, 1},   // exactly the margin
				{10, 90, 2},  // closer than the margin
				{15, 95, 2},  // too soon after the change
				{30, 92, 4},  // still too hot
				{50, 91, 8},  // and again
				{70, 98, 8},  // no more than Most
				{75, 86, 8},  // cooler, within the hysteresis
				{99, 84, 8},  // exactly its end
				{100, 83, 4}, // beyond
				{110, 60, 4}, // too soon
				{120, 60, 2},
				{140, 60, 1},
				{160, 60, 1},
			},
		},
		{"own most and hold", Policy{Margin: 10, Most: 3, Hold: time.Second}, 99, []step{{0, 95, 2}, {1, 95, 3}, {2, 95, 3}, {3, 50, 1}}},
		{"sensors without a limit", Policy{Margin: 10}, 0, []step{{0, 150, 1}}},
		{"a limit of its own", Policy{Margin: 10, Limit: 80}, 0, []step{{0, 75, 2}, {30, 60, 1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			for _, s := range test.steps {
				reading := &Reading{Time: start.Add(time.Duration(s.seconds) * time.Second), Temperatures: []Temperature{
					{Name: "cold", Celsius: 20, Limit: test.limit}, {Name: "hot", Celsius: s.celsius, Limit: test.limit},
				}}
				assert.Equal(t, s.want, test.policy.Step(reading), "after %d s", s.seconds)
			}
		})
	}
}

func TestPolicyAndThrottling(t *testing.T) {
	p := Policy{Margin: 10, Hold: time.Second}
	now := time.Now()
	at := func(seconds int, causes ...Cause) *Reading {
		r := &Reading{Time: now.Add(time.Duration(seconds) * time.Second), Temperatures: []Temperature{{"a", 30, 99}}}
		for _, cause := range causes {
			r.addSlowdown(cause, "part")
		}
		return r
	}
	assert.Equal(t, 1, p.Step(nil))
	assert.Equal(t, 1, p.Step(at(0, PowerCap)), "a GPU at its power limit is not hot")
	assert.Equal(t, 2, p.Step(at(1, Heat)))
	assert.Equal(t, 4, p.Step(at(2, OverCurrent)))
	assert.Equal(t, 4, p.Step(nil), "no reading changes nothing")
	assert.Equal(t, 4, p.Step(&Reading{Time: now.Add(3 * time.Second)}), "nor does one without temperatures")
	assert.Equal(t, 2, p.Step(at(4)))
}

func TestHottest(t *testing.T) {
	r := Reading{Temperatures: []Temperature{{"disk", 70, 0}, {"cpu", 75, 99}, {"gpu", 60, 80}}}
	assert.Equal(t, "gpu", r.Hottest(0).Name)
	assert.Equal(t, "disk", r.Hottest(75).Name)
	assert.Nil(t, (&Reading{}).Hottest(0))
}
