package spelling

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVocabularySuggests(t *testing.T) {
	run := []string{"camera", "mqtt", "web", "precision", "classes"}
	for word, want := range map[string]string{
		"source": "camera", "SOURCE": "camera", "input_source": "camera", "host": "mqtt", "show": "web 127.0.0.1:8080", "half": "precision fp16",
		"camra": "camera", "predict": "", "fps": "", "nonsense": "",
	} {
		assert.Equal(t, want, Flags().Suggest(word, run), word)
	}
	assert.Empty(t, Flags().Suggest("show", []string{"shop", "save"}), "a word of another tool is no misspelling")
	assert.Equal(t, "listen", Flags().Suggest("host", []string{"listen", "model"}))
	assert.Equal(t, "password_file", Keys().Suggest("password", []string{"user", "password_file"}))
	assert.Equal(t, []string{"infer", "run"}, Commands().SuggestAll("predict", []string{"run", "infer", "bench"}))
	assert.Equal(t, []string{"run"}, Commands().SuggestAll("rum", []string{"run", "infer"}))
	assert.Empty(t, Commands().SuggestAll("train", []string{"run", "infer"}))
}

// Every word is written as it is looked up, and no term repeats its word.
func TestVocabulariesAreNormal(t *testing.T) {
	for _, v := range []Vocabulary{Flags(), Keys(), Commands(), Classes()} {
		for word, terms := range v {
			assert.Equal(t, normal(word), word)
			for _, term := range terms {
				assert.NotEmpty(t, term)
			}
		}
	}
}
