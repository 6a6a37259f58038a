package homeassistant

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The first command of the page has exactly the entities that its table lists.
func TestEntitiesOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/home-assistant.md")
	require.NoError(t, err)
	command := regexp.MustCompile(`edge-infer --camera (\w+)=\S+ .*--classes (\S+)`).FindSubmatch(page)
	require.NotNil(t, command, "the first command selects classes")
	on, off := map[string][]string{}, map[string][]string{}
	names := func(cell string) (all []string) {
		for name := range strings.SplitSeq(regexp.MustCompile(` \([^)]*\)`).ReplaceAllString(cell, ""), ",") {
			if name = strings.TrimSpace(name); name != "" {
				all = append(all, strings.ReplaceAll(name, "*sensor*", "CPU"))
			}
		}
		return all
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (machine|camera)[^|]*\|([^|]*)\|([^|]*)\|$`).FindAllStringSubmatch(string(page), -1) {
		on[row[1]], off[row[1]] = append(on[row[1]], names(row[2])...), append(off[row[1]], names(row[3])...)
	}
	classes := strings.Split(string(command[2]), ",")
	found, _ := messages(t, discovery(), &Announcement{
		Temperatures: []string{"cpu"}, Loads: []string{"cpu"}, Power: []string{"cpu"}, PowerMode: true,
		Cameras: []Camera{{Name: string(command[1]), Labels: classes, Seen: classes}},
	}, nil)
	require.Len(t, found, 2)
	for topic, p := range found {
		device := "machine"
		if strings.Contains(topic, "/camera-") {
			device = "camera"
		}
		var enabled, disabled []string
		for _, component := range p.Components {
			if component["enabled_by_default"] == false {
				disabled = append(disabled, component["name"].(string))
			} else {
				enabled = append(enabled, component["name"].(string))
			}
		}
		for _, list := range [][]string{enabled, disabled, on[device], off[device]} {
			slices.Sort(list)
		}
		require.Equal(t, on[device], enabled, device)
		require.Equal(t, off[device], disabled, device)
	}
}
