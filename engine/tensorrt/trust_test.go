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

// TestNamedPlans checks that named plans that every user can write are not run.
func TestNamedPlans(t *testing.T) {
	dir := t.TempDir()
	plan := filepath.Join(dir, "x.engine")
	require.NoError(t, os.WriteFile(plan, []byte("plan"), 0o664))
	check := func(want string) {
		t.Helper()
		warning, err := tensorrt.CheckPlanFile(plan)
		require.Empty(t, warning)
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.EqualError(t, err, "tensorrt open: engine plan "+plan+": "+want)
	}
	check("")
	require.NoError(t, os.Chmod(plan, 0o666))
	const why = ": other users can write code to it, and it would run "
	check(plan + " has mode 0666" + why + "(chmod o-w " + plan + " if you know who wrote to it, else build the plan again)")
	require.NoError(t, os.Chmod(plan, 0o644))
	require.NoError(t, os.Chmod(dir, 0o777))
	check(dir + " has mode 0777" + why + "(chmod o-w " + dir + " if you know who wrote to it, else build the plan again)")
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	check("")
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	require.NoError(t, os.Chown(plan, 4711, -1))
	warning, err := tensorrt.CheckPlanFile(plan)
	require.NoError(t, err)
	require.Equal(t, plan+" belongs to user 4711, who can change what runs here", warning)
}

// TestCachedPlansThatOthersCanWrite checks this for cached plans, even with a correct checksum.
func TestCachedPlansThatOthersCanWrite(t *testing.T) {
	dir := t.TempDir()
	cache := tensorrt.Cache{Dir: dir}
	o := buildOptions(100300, small(nil))
	built, err := child(t).Build(t.Context(), o, "", cache, func(tensorrt.Progress) {})
	require.NoError(t, err)
	plan := built.Path
	open := func() error {
		options := tensorrt.Options{
			Options: engine.Options{Path: "small.onnx", Bytes: o.Model, Library: libraries[100300], MaxBatch: 4}, Cache: cache, Log: quiet,
		}
		e, err := options.Open()
		if err == nil {
			require.NoError(t, e.Close())
		}
		return err
	}
	require.NoError(t, open())
	const why = ": other users can write code to it, and it would run "
	for _, path := range []string{plan, dir} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		for mode, text := range map[os.FileMode]string{0o777: "0777", 0o772: "0772", 0o720: "0720"} {
			require.NoError(t, os.Chmod(path, mode))
			err := open()
			require.EqualError(t, err, "tensorrt open: plan cache: "+path+" has mode "+text+why+
				"(chmod go-w "+path+" if you know who wrote to it, else remove it)")
			require.NotErrorIs(t, err, tensorrt.ErrNoPlan, "nothing is built into a directory of everybody")
		}
		require.NoError(t, os.Chmod(path, info.Mode().Perm()))
		require.NoError(t, open())
	}
	other := filepath.Join(t.TempDir(), "elsewhere.plan")
	require.NoError(t, os.Rename(plan, other))
	require.NoError(t, os.Symlink(other, plan))
	require.ErrorIs(t, open(), tensorrt.ErrNoPlan, "a link may lead anywhere")
	require.NoError(t, os.Remove(plan))
	require.NoError(t, os.Rename(other, plan))
	require.NoError(t, open())
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	for _, path := range []string{plan, dir} {
		require.NoError(t, os.Chown(path, 4711, -1))
		require.EqualError(t, open(), "tensorrt open: plan cache: "+path+" belongs to user 4711, this is user 0"+why+
			"(remove it, or set XDG_CACHE_HOME to a directory of this user)")
		require.NoError(t, os.Chown(path, 0, -1))
	}
	require.NoError(t, open())
}

// TestBuilderResources checks a directory that the loader does not search.
func TestBuilderResources(t *testing.T) {
	for _, version := range []int{8603, 100600} {
		dir := t.TempDir()
		tables, err := filepath.Abs(".")
		require.NoError(t, err)
		_, err = fake.Build(dir, fake.Options{Version: version, Resource: true, Tables: tables})
		require.NoError(t, err)
		o := buildOptions(0, small(nil))
		o.Library.Path = dir
		_, err = child(t).Build(t.Context(), o, "", tensorrt.Cache{Dir: t.TempDir()}, func(tensorrt.Progress) {})
		require.NoError(t, err)

		resources, err := filepath.Glob(filepath.Join(dir, "libnvinfer_builder_resource*"))
		require.NoError(t, err)
		require.Len(t, resources, 1)
		require.NoError(t, os.Remove(resources[0]))
		_, err = child(t).Build(t.Context(), o, "", tensorrt.Cache{Dir: t.TempDir()}, func(tensorrt.Progress) {})
		require.ErrorContains(t, err, "Unable to load library: "+filepath.Base(resources[0]))
	}
}
