package infer

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestALineStandsForOneImage, also where names have bytes that JSON cannot hold, so that two become the same.
func TestALineStandsForOneImage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen.jsonl")
	begin := func() recorder {
		r, err := (&Record{Format: JSONLines, Path: path}).open(nil, true)
		require.NoError(t, err)
		return r
	}
	files := []string{"a.jpg", "b\xff\xfe.jpg", "b\xfd\xfc.jpg", "video.mp4", "video.mp4", "c.jpg"}
	r := begin()
	for _, file := range files[:2] {
		require.NoError(t, r.add(&Seen{File: file}))
	}
	require.NoError(t, r.close(false))
	r = begin()
	var held []bool
	for _, file := range files {
		held = append(held, r.has(file))
	}
	require.Equal(t, []bool{true, true, false, false, false, false}, held)
	for _, file := range files[2:] {
		require.NoError(t, r.add(&Seen{File: file}))
	}
	require.NoError(t, r.close(true))
	r = begin()
	for _, file := range files {
		require.True(t, r.has(file), file)
	}
	require.NoError(t, r.close(true))
}
