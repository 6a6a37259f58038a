package outputs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// documents are what a run reports of a State.
type documents struct {
	Status    *payload.Status
	Stats     *payload.Stats
	Page      web.Status // with the metrics and the readiness check
	Discovery *homeassistant.Announcement
	Terminal  *report.State
	Summary   *report.Summary
	Totals    map[string]any
	Start     string
}

func render(t *testing.T, s *state.State) documents {
	now := time.Unix(1<<31, 0)
	c := site.ResolveOutputs(config.Default())
	c.DepthUnit, c.MQTT.DiscoveryLabels = "m", []string{"person"}
	var out bytes.Buffer
	o := &Outputs{Settings: c, Screen: terminal.Over(&out, &out), Logger: slog.New(slog.DiscardHandler)}
	o.PrintStart(s)
	text, err := json.Marshal(totals(s, now))
	require.NoError(t, err)
	d := documents{
		Status: statusPayload(s), Stats: statsPayload(s), Page: pageStatus(s), Discovery: discovery(s, c), Terminal: terminalState(s, now),
		Summary: summary(s, now), Start: out.String(),
	}
	require.NoError(t, json.Unmarshal(text, &d.Totals))
	return d
}

// filled returns a State with a value in every field, none like another.
func filled() *state.State {
	s := new(state.State)
	n := 1
	fill(reflect.ValueOf(s).Elem(), &n)
	s.Opening = ""
	c := &s.Cameras[0]
	c.Leaving = false
	c.Site.Name, c.Capture.Name, c.Totals.Camera, c.Recent.Camera = "gate", "gate", "gate", "gate"
	c.Model.Recognised.Task = engine.Detect
	c.Site.Configured.Classes = nil
	s.Groups[0].Model.Image.Index = 0 // of one input
	s.Outputs.Clips.Cameras = map[string]record.CameraStatus{"gate": s.Outputs.Clips.Cameras["v"]}
	return s
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1_000_000+int64(*n), 0)))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("v").Convert(v.Type().Key()), value)
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[error]() {
			v.Set(reflect.ValueOf(fmt.Errorf("e%d", *n)))
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("v%d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1) // the stages have a few values
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n % 100))
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*n))
	}
}

// variants are States in which different fields show.
func variants() map[string]func(*state.State) {
	camera := func(change func(*state.Camera)) func(*state.State) {
		return func(s *state.State) { change(&s.Cameras[0]) }
	}
	task := func(task engine.Task) func(*state.State) {
		return camera(func(c *state.Camera) {
			c.Model.Recognised.Task = task
			c.Tracked = false
		})
	}
	return map[string]func(*state.State){
		"all":        func(*state.State) {},
		"opening":    func(s *state.State) { s.Opening = "engine plan" },
		"segments":   task(engine.Semantic),
		"depth":      task(engine.Depth),
		"classifies": task(engine.Classify),
		"runs": camera(func(c *state.Camera) {
			c.Capture.State, c.Capture.Reason = capture.Running, ""
		}),
		"secondary network hangs": func(s *state.State) { s.Secondary[0].Stuck = false },
		"leaves":                  camera(func(c *state.Camera) { c.Leaving = true }),
		"two networks": func(s *state.State) {
			s.Groups = append(s.Groups, s.Groups[0])
		},
		"fast camera": camera(func(c *state.Camera) { c.Capture.FPS = 1e6 }),
		"works": func(s *state.State) {
			s.Cameras[0].Capture.Reason, s.Cameras[0].NoClasses = "", ""
			s.Groups[0].Waits = false
			s.Outputs.Webhooks[0].Disabled = false
		},
	}
}

// TestEverythingReportedIsInAState: a field of what a run reports that no State sets is a value that something else is asked for, or that
// nobody sets.
func TestEverythingReportedIsInAState(t *testing.T) {
	seen := map[string]bool{}
	for _, change := range variants() {
		s := filled()
		change(s)
		collect(reflect.ValueOf(render(t, s)), "", seen)
	}
	elsewhere := map[string]string{
		"Discovery.Manufacturer": "the firmware, read by announce",
		"Discovery.Model":        "the firmware, read by announce",
		"Discovery.Serial":       "not published",
	}
	var missing []string
	for _, path := range paths(reflect.TypeFor[documents](), "") {
		if !seen[path] && elsewhere[path] == "" {
			missing = append(missing, path)
		}
	}
	require.Empty(t, missing, "fields without a source in State")
}

// collect records the paths of all fields that have a value.
func collect(v reflect.Value, path string, seen map[string]bool) {
	if v.IsZero() {
		return
	}
	seen[path] = true
	switch v.Kind() {
	case reflect.Pointer:
		collect(v.Elem(), path, seen)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				collect(v.Field(i), join(path, v.Type().Field(i).Name), seen)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			collect(v.Index(i), path+"[]", seen)
		}
	}
}

// paths returns the paths of all fields of a type.
func paths(of reflect.Type, path string) (all []string) {
	switch of.Kind() {
	case reflect.Pointer:
		return paths(of.Elem(), path)
	case reflect.Slice, reflect.Array:
		return paths(of.Elem(), path+"[]")
	case reflect.Struct:
		if of == reflect.TypeFor[time.Time]() {
			break
		}
		for i := range of.NumField() {
			if field := of.Field(i); field.IsExported() {
				all = append(all, paths(field.Type, join(path, field.Name))...)
			}
		}
		return all
	}
	return []string{path}
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// TestEveryFieldOfAStateIsReported: without the value of a field something that a run reports is different.
func TestEveryFieldOfAStateIsReported(t *testing.T) {
	var unused []string
	for _, path := range stateFields(reflect.TypeFor[state.State](), "") {
		used := false
		for _, change := range variants() {
			with, without := filled(), filled()
			change(with)
			change(without)
			field := fieldOf(reflect.ValueOf(without).Elem(), strings.Split(path, "."))
			field.SetZero()
			used = used || !reflect.DeepEqual(render(t, with), render(t, without))
		}
		if !used {
			unused = append(unused, path)
		}
	}
	require.Empty(t, unused, "fields of State that nothing reports")
}

// stateFields returns the paths of the fields of a State and of the types that its package declares.
func stateFields(of reflect.Type, path string) (all []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[state.State]().PkgPath() {
		return []string{path}
	}
	for i := range of.NumField() {
		all = append(all, stateFields(of.Field(i).Type, join(path, of.Field(i).Name))...)
	}
	return all
}

func fieldOf(v reflect.Value, path []string) reflect.Value {
	for _, name := range path {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice {
			if v.Kind() == reflect.Slice {
				v = v.Index(0)
			} else {
				v = v.Elem()
			}
		}
		v = v.FieldByName(name)
	}
	return v
}

func TestTroubleOfARunIsInItsStatus(t *testing.T) {
	s := &state.State{}
	require.Empty(t, trouble(s))
	s.Reload = &state.Reload{Err: errors.New("camera: unknown key")}
	require.Equal(t, "camera: unknown key", statusPayload(s).ConfigurationError)
	s.Outputs.Clips = &record.Status{Cameras: map[string]record.CameraStatus{"gate": {Reason: "no video"}}}
	s.Cameras = []state.Camera{{Capture: capture.Stats{Name: "gate"}}}
	require.Equal(t, "; no clips of gate: no video", trouble(s))
	s.Outputs.Clips.Reason = "disk full"
	require.Equal(t, "; no clips are recorded: disk full", trouble(s))
}
