package outputs

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
)

// unchanged says of every file that it has not changed.
func unchanged(string) bool { return false }

// TestEverySettingOfAnOutputIsCompared: no change of a setting goes unnoticed, and what takes a restart says which.
func TestEverySettingOfAnOutputIsCompared(t *testing.T) {
	restarts := []string{
		"MQTT.CountInterval", "MQTT.Frigate", "MQTT.DeepStream", "MQTT.DeepStreamSchema", "MQTT.Discovery", "MQTT.Control", "MQTT.Spool",
		"Events.Directory", "Clips.Directory",
	}
	tunes := []string{
		"MQTT.DiscoveryLabels", "Events.Days", "Events.MaxMB", "Clips.Before", "Clips.After", "Clips.Cooldown", "Clips.MaxMB", "Clips.Days",
		"Clips.Sync",
	}
	const byCamera = "Clips.Enabled"
	o := &Outputs{}
	settings := func() *site.Outputs {
		s := site.ResolveOutputs(config.Default())
		s.Webhooks = []config.Webhook{{Name: "alarm"}}
		return s
	}
	for _, section := range []string{"MQTT", "Events", "Clips", "Webhooks", "Upload", "Web"} {
		find := func(s *site.Outputs) reflect.Value {
			v := reflect.ValueOf(s).Elem().FieldByName(section)
			if v.Kind() == reflect.Slice {
				v = v.Index(0)
			}
			return v
		}
		for i := range find(settings()).NumField() {
			next := settings()
			alter(t, find(next).Field(i))
			name := section + "." + find(next).Type().Field(i).Name
			changes := o.Compare(&site.OutputChange{Was: settings(), Next: next, Renewed: unchanged})
			want := site.Reopen
			switch {
			case name == byCamera:
				want = site.Keep
			case slices.Contains(tunes, name):
				want = site.Tune
			case slices.Contains(restarts, name):
				want = site.Restart
			}
			assert.Equal(t, want, changes.Action(), name)
			assert.LessOrEqual(t, len(changes)-len(kept(changes)), 1, "%s: %v", name, changes)
		}
	}
	next := settings()
	next.MQTT.URL = config.Off
	assert.Equal(t, []string{"mqtt: restart (mqtt.url from or to off)"},
		o.Compare(&site.OutputChange{Was: settings(), Next: next, Renewed: unchanged}).Reasons(site.Restart))
}

// kept returns the changes that take nothing.
func kept(changes site.Changes) (all site.Changes) {
	return slices.DeleteFunc(slices.Clone(changes), func(c site.Change) bool { return c.Action != site.Keep })
}

// alter changes a value.
func alter(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Slice:
		v.Set(reflect.ValueOf([]string{"x"}))
	case reflect.Struct:
		alter(t, v.Field(0))
	default:
		require.Fail(t, "no other value", v.Kind())
	}
}

// TestRenewedFilesReopenTheirOutput: each file that an output reads when it opens reopens that one alone.
func TestRenewedFilesReopenTheirOutput(t *testing.T) {
	s := site.ResolveOutputs(config.Default())
	owners := map[string]string{}
	place := func(output string, paths ...*string) {
		for _, path := range paths {
			*path = output + string(rune('a'+len(owners)))
			owners[*path] = output
		}
	}
	place("mqtt", &s.MQTT.PasswordFile, &s.MQTT.CA, &s.MQTT.Certificate, &s.MQTT.Key)
	place("web", &s.Web.TokenFile, &s.Web.PasswordFile, &s.Web.Certificate, &s.Web.Key)
	o := &Outputs{}
	require.Len(t, o.Files(s), len(owners))
	for path, output := range owners {
		changes := o.Compare(&site.OutputChange{Was: s, Next: s, Renewed: func(at string) bool { return at == path }})
		assert.Equal(t, []string{output + ": reopen"}, changes.Reasons(site.Reopen))
		assert.Equal(t, site.Reopen, changes.Action())
	}
}

// recorded is an output that notes what is done with it.
type recorded struct {
	name string
	keep bool
	fail error
	done *[]string
}

func (r recorded) Compare(*site.OutputChange) site.Change {
	return unlike(r.name, !r.keep, site.Reopen, "")
}

func (r recorded) Files(*site.Outputs) []string { return nil }

func (r recorded) Reload(ctx context.Context, change *site.OutputChange) error {
	*r.done = append(*r.done, r.name+" "+change.Next.Device)
	return errors.Join(r.fail, ctx.Err())
}

// TestAFailedReloadIsTakenBack in reverse, also when its context has ended.
func TestAFailedReloadIsTakenBack(t *testing.T) {
	change := &site.OutputChange{Was: &site.Outputs{Device: "was"}, Next: &site.Outputs{Device: "next"}, Renewed: unchanged}
	refused := errors.New("refused")
	var done []string
	all := []output{recorded{"a", false, nil, &done}, recorded{"b", true, nil, &done}, recorded{"c", false, nil, &done}}
	require.NoError(t, reload(t.Context(), all, change))
	assert.Equal(t, []string{"a next", "c next"}, done)
	done = nil
	all = append(all, recorded{"d", false, refused, &done}, recorded{"e", false, nil, &done})
	require.Equal(t, refused.Error(), reload(t.Context(), all, change).Error())
	assert.Equal(t, []string{"a next", "c next", "d next", "c was", "a was"}, done)
	done = nil
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	require.ErrorIs(t, reload(ctx, all, change), context.Canceled)
	assert.Empty(t, done)
}
