package process

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChecks(t *testing.T) {
	s := DefaultSettings()
	for _, check := range []func() error{
		s.ValidateProcessors, s.ValidateGC, s.ValidateMemoryLimit, s.ValidateCaptureCPUs,
		s.ValidateCapturePriority,
	} {
		require.NoError(t, check())
	}
	s = Settings{"8", Off, "256MiB", "0,2-3", "99"}
	for _, check := range []func() error{
		s.ValidateProcessors, s.ValidateGC, s.ValidateMemoryLimit, s.ValidateCaptureCPUs,
		s.ValidateCapturePriority,
	} {
		require.NoError(t, check())
	}
	s = Settings{"0", "5", "1MiB", "3-1", "100"}
	assert.EqualError(t, s.ValidateProcessors(), `"0" is neither auto nor a number from 1 to 1024`)
	assert.EqualError(t, s.ValidateGC(), `"5" is neither auto nor off nor a number from 10 to 10000`)
	assert.EqualError(t, s.ValidateMemoryLimit(), `"1MiB" is neither auto nor off nor a size of at least 16MiB, as 256MiB or 1GiB`)
	assert.EqualError(t, s.ValidateCaptureCPUs(), `"3-1" is no list of CPU numbers below 1024, as 0 or 0,2-3`)
	assert.EqualError(t, s.ValidateCapturePriority(), `"100" is neither auto nor off nor a number from 1 to 99`)
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{"268435456": 256 << 20, "256MiB": 256 << 20, "2 GiB": 2 << 30, "20480KiB": 20 << 20} {
		got, err := bytes(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "GiB", "-1GiB", "1.5GiB", "9999999999GiB", "1TiB"} {
		_, err := bytes(text)
		assert.Error(t, err, text)
	}
}

func TestCPUs(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "3,1": "1,3", "0-1, 2,5-7": "0-2,5-7", "1023": "1023"} {
		set, err := cpus(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, list(&set), text)
	}
}

func FuzzCPUs(f *testing.F) {
	for _, seed := range []string{"0", "0,2-3", "1024", "-1", "5-2", "0-1023", "a", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := cpus(text)
		if err != nil {
			return
		}
		again, err := cpus(list(&set))
		require.NoError(t, err, text)
		assert.Equal(t, set, again)
	})
}
