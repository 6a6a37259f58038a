package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func triangle(name string) zone.Config {
	return zone.Config{Zones: []zone.Zone{{Name: name, Points: []zone.Point{{X: 0.1, Y: 0.1}, {X: 0.9, Y: 0.1}, {X: 0.5, Y: 0.9}}}}}
}

// service is a configuration as a package installs it, in a directory, with a state directory beside it.
func service(t *testing.T, text string) (sources *Sources, file, state string) {
	dir := t.TempDir()
	file, state = filepath.Join(dir, "edge-infer.yaml"), filepath.Join(dir, "state")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o444))
	return &Sources{File: file, Scope: AllSections(), Environment: func(name string) (string, bool) {
		return map[string]string{"STATE_DIRECTORY": state}[name], name == "STATE_DIRECTORY"
	}}, file, state
}

// TestDrawnZonesAreSavedBesideTheConfiguration, of which every style is left as it is, a link included.
func TestDrawnZonesAreSavedBesideTheConfiguration(t *testing.T) {
	for name, text := range map[string]string{
		"block":  "cameras:\n  - name: a # the gate\n    uri: demo\n  - name: b\n    uri: demo\n    analytics:\n      lines:\n        - {name: old, from: {x: 0, y: 0}, to: {x: 1, y: 1}}\n",
		"flow":   `{cameras: [{name: a, uri: demo}, {name: b, uri: demo, analytics: {lines: [{name: old, from: {x: 0, y: 0}, to: {x: 1, y: 1}}]}}]}`,
		"anchor": "cameras:\n  - name: a\n    uri: &where demo\n  - name: b\n    uri: *where\n    analytics: {lines: [{name: old, from: {x: 0, y: 0}, to: {x: 1, y: 1}}]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			sources, file, state := service(t, text)
			link := filepath.Join(filepath.Dir(file), "link.yaml")
			require.NoError(t, os.Symlink(file, link))
			sources.File = link
			z := &Zones{Sources: sources}
			require.NoError(t, z.Writable())
			for _, camera := range []string{"a", "b"} {
				_, version, err := z.Get(camera)
				require.NoError(t, err)
				next, err := z.Set(camera, version, triangle("yard"))
				require.NoError(t, err)
				saved, again, err := z.Get(camera)
				require.NoError(t, err)
				require.Equal(t, next, again)
				require.Equal(t, triangle("yard"), saved)
			}
			c, err := sources.Load()
			require.NoError(t, err)
			require.Equal(t, triangle("yard"), c.Cameras[0].Analytics)
			require.Equal(t, triangle("yard"), c.Cameras[1].Analytics, "what was drawn replaces what was there")
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, text, string(after))
			target, err := os.Readlink(link)
			require.NoError(t, err)
			require.Equal(t, file, target)
			require.FileExists(t, filepath.Join(state, "zones.yaml"))
		})
	}
}

func TestTheLaterOneOfDrawnAndConfiguredZonesWins(t *testing.T) {
	sources, file, _ := service(t, "cameras: [{name: a, uri: demo}]")
	z := &Zones{Sources: sources}
	_, err := z.Set("a", "", triangle("drawn"))
	require.NoError(t, err)
	inForce := func() zone.Config {
		c, err := sources.Load()
		require.NoError(t, err)
		return c.Cameras[0].Analytics
	}
	require.Equal(t, triangle("drawn"), inForce())
	require.NoError(t, os.Chmod(file, 0o644))
	require.NoError(t, os.WriteFile(file, []byte("log: debug\ncameras: [{name: a, uri: demo?seed=2}]"), 0o644))
	require.Equal(t, triangle("drawn"), inForce(), "another change of the file leaves them")
	require.NoError(t, os.WriteFile(file,
		[]byte("cameras: [{name: a, uri: demo, analytics: {lines: [{name: new, from: {x: 0, y: 0}, to: {x: 1, y: 1}}]}}]"), 0o644))
	require.Equal(t, "new", inForce().Lines[0].Name)
	_, err = z.Set("a", "", triangle("again"))
	require.NoError(t, err)
	require.Equal(t, triangle("again"), inForce())
}

// TestNoSaveIsLost: of many at once each one that was accepted is there, or was made in the knowledge of what replaced it.
func TestNoSaveIsLost(t *testing.T) {
	const saves = 48
	text := "cameras:\n"
	for i := range 6 {
		text += fmt.Sprintf("  - {name: cam%d, uri: demo}\n", i)
	}
	sources, _, _ := service(t, text)
	z := &Zones{Sources: sources}
	var group sync.WaitGroup
	var accepted, outdated atomic.Int64
	for i := range saves {
		group.Go(func() {
			camera := fmt.Sprintf("cam%d", i%6)
			for {
				now, version, err := z.Get(camera)
				if err != nil {
					t.Error(err)
					return
				}
				now.Zones = append(now.Zones, triangle(fmt.Sprintf("zone%d", i)).Zones...)
				switch _, err := z.Set(camera, version, now); {
				case errors.Is(err, ErrOutdated):
					outdated.Add(1)
					continue
				case err != nil:
					t.Error(err)
				default:
					accepted.Add(1)
				}
				return
			}
		})
	}
	group.Wait()
	require.EqualValues(t, saves, accepted.Load())
	require.Positive(t, outdated.Load())
	c, err := sources.Load()
	require.NoError(t, err)
	total := 0
	for i := range c.Cameras {
		total += len(c.Cameras[i].Analytics.Zones)
	}
	require.Equal(t, saves, total)
}

func TestZonesThatCannotBeSaved(t *testing.T) {
	sources, _, state := service(t, "cameras: [{name: '1', uri: demo}, {name: 'null', uri: demo}, {name: 'a:b', uri: demo}]")
	z := &Zones{Sources: sources}
	for _, camera := range []string{"1", "null", "a:b"} { // names that YAML could take for something else
		_, err := z.Set(camera, "", triangle("x"))
		require.NoError(t, err)
		saved, _, err := z.Get(camera)
		require.NoError(t, err)
		require.Equal(t, triangle("x"), saved)
	}
	_, err := z.Set("none", "", zone.Config{})
	require.EqualError(t, err, `no camera "none"`)
	_, err = z.Set("1", "0123", zone.Config{})
	require.ErrorIs(t, err, ErrOutdated)

	path := filepath.Join(state, "zones.yaml")
	require.NoError(t, os.WriteFile(path, []byte("cameras: {a: {zone: 1}}"), 0o600))
	_, err = sources.Load()
	require.ErrorContains(t, err, "zones drawn on the page: "+path+": ")
	require.ErrorContains(t, err, "(mend it, or remove it and draw them again)")
	_, err = z.Set("1", "", zone.Config{})
	require.Error(t, err, "nothing is written over a file that is not understood")

	require.NoError(t, os.RemoveAll(state))
	require.NoError(t, os.WriteFile(state, nil, 0o600))
	require.Error(t, z.Writable())
	_, err = z.Set("1", "", zone.Config{})
	require.Error(t, err)

	z.Sources.Environment = func(string) (string, bool) { return "", false }
	require.EqualError(t, z.Writable(), "there is no directory to save zones to: set StateDirectory= in the unit, XDG_STATE_HOME or HOME")
}
