package homeassistant

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheBlueprintFitsWhatIsPublished compares the automation that the documentation offers with what it reads.
func TestTheBlueprintFitsWhatIsPublished(t *testing.T) {
	text, err := os.ReadFile("../../docs/home-assistant/notify-with-snapshot.yaml")
	require.NoError(t, err)
	var file struct {
		Blueprint struct {
			Input map[string]struct {
				Default  any
				Selector struct {
					Select struct {
						Options []struct{ Value string }
					}
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "!input ", "")), &file))
	inputs := file.Blueprint.Input
	var types []string
	for _, option := range inputs["types"].Selector.Select.Options {
		types = append(types, option.Value)
	}
	assert.NotEmpty(t, types)
	for _, kind := range append(types, defaults(inputs["types"].Default)...) {
		assert.Contains(t, eventTypes, kind)
	}
	for _, kind := range defaults(inputs["types"].Default) {
		assert.Contains(t, notableTypes, kind, "the Events entity has it")
	}
	for _, used := range regexp.MustCompile(`!input (\w+)`).FindAllStringSubmatch(string(text), -1) {
		assert.Contains(t, inputs, used[1])
	}
	for _, attribute := range regexp.MustCompile(`\be\.(\w+)`).FindAllStringSubmatch(string(text), -1) {
		assert.Regexp(t, `[( ]`+attribute[1]+`=`, eventFields, "an attribute of the event entity")
	}
	assert.Contains(t, string(text), "state_attr(image, 'entity_picture')", "Home Assistant's name of the address of an entity's image")
}

func defaults(value any) (texts []string) {
	for _, v := range value.([]any) {
		texts = append(texts, v.(string))
	}
	slices.Sort(texts)
	return texts
}
