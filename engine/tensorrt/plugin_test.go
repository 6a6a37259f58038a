package tensorrt_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

// spline is a model with an operator that only a plugin has.
func spline(operator string) []byte {
	return small(func(m *fake.Model) { m.Operators = []string{"Conv", operator} })
}

func buildPlugin(t *testing.T, name string, p fake.Plugin) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, p.Build(path))
	return path
}

func TestPlugin(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and its code is in C or in other processes")
	}
	for _, way := range []struct {
		name   string
		listed bool // creators come from a list instead of a static initialiser
	}{{"static", false}, {"listed", true}} {
		t.Run(way.name, func(t *testing.T) {
			eachVersion(t, func(t *testing.T, version int) {
				if way.listed && version < 8601 {
					t.Skip("IPluginRegistry::loadLibrary came with 8.6.1")
				}
				operator := "CustomSpline" + way.name
				p := fake.Plugin{Operator: operator, Version: version, Library: libraries[version], Listed: way.listed}
				plugin := buildPlugin(t, "libspline.so", p)
				cache := tensorrt.Cache{Dir: t.TempDir()}
				o := buildOptions(version, spline(operator))

				// Without the plugin neither the model nor the plan can be opened, and both errors name --plugin.
				_, err := child(t).Build(t.Context(), o, "", cache, nil)
				require.ErrorIs(t, err, engine.ErrUnsupported)
				require.ErrorContains(t, err, "Plugin not found")
				require.ErrorContains(t, err, "--plugin LIB.so")

				o.Plugins = []string{plugin}
				built, err := child(t).Build(t.Context(), o, "", cache, nil)
				require.NoError(t, err)
				require.Len(t, built.Facts.Plugins, 1)
				require.Equal(t, "libspline.so", built.Facts.Plugins[0].Name)
				file, err := os.ReadFile(built.Path)
				require.NoError(t, err)
				facts, bare, err := tensorrt.ReadPlan(file)
				require.NoError(t, err)
				require.Equal(t, built.Facts.Plugins, facts.Plugins)

				options := tensorrt.Options{
					Options: engine.Options{Path: "spline.plan", Bytes: file, Library: libraries[version], MaxBatch: 4}, Cache: cache, Log: quiet,
				}
				_, err = options.Open()
				require.ErrorIs(t, err, engine.ErrPlanMismatch)
				require.EqualError(t, err,
					"tensorrt open: the plan was built with plugin libspline.so, which is not loaded (give it with --plugin libspline.so)")
				options.Bytes = bare // as trtexec leaves it
				_, err = options.Open()
				require.ErrorIs(t, err, engine.ErrPlanMismatch)
				require.ErrorContains(t, err, "(load the library of its operators with --plugin LIB.so)")

				options.Bytes, options.Plugins = file, o.Plugins
				e, err := options.Open()
				require.NoError(t, err)
				require.NoError(t, e.Close())

				// The cache key contains the model and the plugin's hash.
				options.Bytes = o.Model
				e, err = options.Open() // it is loaded already
				require.NoError(t, err)
				require.NoError(t, e.Close())
				options.Plugins = nil
				_, err = options.Open()
				require.ErrorIs(t, err, tensorrt.ErrNoPlan)
			})
		})
	}
}

// TestKeyContainsPlugins builds with two plugins that differ in another operator only.
func TestKeyContainsPlugins(t *testing.T) {
	cache := tensorrt.Cache{Dir: t.TempDir()}
	o := buildOptions(100300, small(nil))
	var paths []string
	for _, operator := range []string{"CustomFirst", "CustomSecond"} {
		o.Plugins = []string{buildPlugin(t, "libsame.so", fake.Plugin{Operator: operator, Version: 100300, Library: libraries[100300]})}
		built, err := child(t).Build(t.Context(), o, "", cache, nil)
		require.NoError(t, err)
		paths = append(paths, built.Path)
	}
	require.NotEqual(t, paths[0], paths[1])

	// A plan of the first opens with the second, which has the same name, with a warning.
	file, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	log, text := logger()
	options := tensorrt.Options{
		Options: engine.Options{Path: "a.plan", Bytes: file, Library: libraries[100300], Plugins: o.Plugins}, Cache: cache, Log: log,
	}
	e, err := options.Open()
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.Contains(t, text(), "the plan was built with another build of this plugin")
}

// TestPluginsFindTheirLibrary lets the linker resolve the registry: in the plugin's libraries or in the program.
func TestPluginsFindTheirLibrary(t *testing.T) {
	p := fake.Plugin{Operator: "CustomLinked", Version: 110100, Library: libraries[110100], Linked: true}
	o := buildOptions(110100, spline("CustomLinked"))
	o.Plugins = []string{buildPlugin(t, "libopen.so", p)}
	_, err := child(t).Build(t.Context(), o, "", tensorrt.Cache{Dir: t.TempDir()}, nil)
	require.NoError(t, err)
}

func TestUnusablePlugins(t *testing.T) {
	library, err := tensorrt.OpenLibrary(tensorrt.LibraryOptions{Path: libraries[100300]})
	require.NoError(t, err)
	p := fake.Plugin{Operator: "CustomRefused", Version: 100300, Library: libraries[100300]}
	refused := func(path, format string) {
		_, err := library.LoadPlugins([]string{path}, quiet)
		require.ErrorContains(t, err, format)
		require.NotContains(t, err.Error(), "\n")
	}

	dir := t.TempDir()
	refused(filepath.Join(dir, "none.so"), "tensorrt open: plugin "+filepath.Join(dir, "none.so")+": ")
	refused("none.so", "/none.so: ") // not the loader's directories
	refused(dir, "plugin "+dir+" is not a shared object (name the .so file)")
	text := filepath.Join(dir, "text.so")
	require.NoError(t, os.WriteFile(text, []byte("not a library, but longer than a header"), 0o600))
	refused(text, "plugin "+text+" is not a shared object (name the .so file)")

	good, err := os.ReadFile(buildPlugin(t, "libgood.so", p))
	require.NoError(t, err)
	foreign := append([]byte(nil), good...)
	foreign[18], foreign[19] = 8, 0 // MIPS
	path := filepath.Join(dir, "foreign.so")
	require.NoError(t, os.WriteFile(path, foreign, 0o600))
	refused(path, "plugin "+path+" is for another processor architecture (build it for ")
	short := filepath.Join(dir, "short.so")
	require.NoError(t, os.WriteFile(short, good[:200], 0o600))
	refused(short, "plugin not loaded: "+short+": ")

	open := filepath.Join(dir, "open.so")
	require.NoError(t, os.WriteFile(open, good, 0o600))
	require.NoError(t, os.Chmod(open, 0o666))
	refused(open, "plugin "+open+": "+open+" has mode 0666")
	require.NoError(t, os.Chmod(open, 0o600))

	idle := p
	idle.Idle = true
	refused(buildPlugin(t, "libidle.so", idle), "registers no new operator with TensorRT 10.3.0 "+
		"(build the plugin against the headers of TensorRT 10.3.0")
	old := p
	old.Needs = "libnvinfer.so.7"
	refused(buildPlugin(t, "libold.so", old), "libold.so was built for TensorRT 7, this is 10.3.0 (build the plugin against")

	// Registering the same operator again has no effect, neither from an initialiser nor from a list.
	_, err = library.LoadPlugins([]string{open}, quiet)
	require.NoError(t, err)
	_, err = library.LoadPlugins([]string{open}, quiet)
	require.NoError(t, err, "one that is loaded may be named again")
	refused(buildPlugin(t, "libtwice.so", p), "registers no new operator")
	listed := p
	listed.Listed = true
	refused(buildPlugin(t, "liblisted.so", listed), "refused by TensorRT 10.3.0: Plugin CustomRefused is registered already")
}
