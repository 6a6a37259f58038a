package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// deploy is the directory of what others run beside the daemon.
const deploy = "../../deploy/"

// TestDashboardAsksForWhatThereIs holds each query of the Grafana dashboard against the list of metrics, which a test of internal/web holds
// against what the daemon exports: their names, and the labels that a query selects or groups by, or a legend shows.
func TestDashboardAsksForWhatThereIs(t *testing.T) {
	list, err := os.ReadFile("internal/web/METRICS.md")
	require.NoError(t, err)
	labels := map[string]string{} // of a metric
	for _, row := range regexp.MustCompile("(?m)^\\| `(edge_infer_\\w+)` \\| (\\w+) \\|([^|]*)\\|").FindAllStringSubmatch(string(list), -1) {
		labels[row[1]] = row[3] + " instance le"
		if row[2] == "summary" {
			labels[row[1]] += " quantile"
		}
	}
	require.NotEmpty(t, labels)
	data, err := os.ReadFile(deploy + "grafana/edge-infer.json")
	require.NoError(t, err)
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Query string }
		}
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal(data, &dashboard))
	known := func(query, legend, where string) {
		names := regexp.MustCompile(`edge_infer_\w+`).FindAllString(query, -1)
		require.NotEmpty(t, names, where)
		for _, name := range names {
			have, found := labels[strings.TrimSuffix(name, "_bucket")]
			require.True(t, found, "%s: %s", where, name)
			used := regexp.MustCompile(`(\w+)(?:=~|=)"`).FindAllStringSubmatch(query, -1)
			used = append(used, regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(legend, -1)...)
			for _, group := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(query, -1) {
				for label := range strings.SplitSeq(group[1], ", ") {
					used = append(used, []string{"", label})
				}
			}
			for _, label := range used {
				assert.Regexp(t, `\b`+label[1]+`\b`, have, "%s: %s has no such label", where, name)
			}
		}
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, panel := range dashboard.Panels {
		assert.False(t, ids[panel.ID], panel.Title)
		ids[panel.ID] = true
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				assert.Empty(t, cells[[2]int{x, y}], panel.Title)
				assert.Less(t, x, 24, panel.Title)
				cells[[2]int{x, y}] = panel.Title
			}
		}
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			known(target.Expr, target.LegendFormat, panel.Title)
		}
	}
	for _, choice := range dashboard.Templating.List {
		if strings.HasPrefix(choice.Query, "label_values") {
			known(choice.Query, "{{"+choice.Name+"}}", choice.Name)
		}
	}
}

// unmarshal reads a YAML file of deploy.
func unmarshal(t *testing.T, path string, into any) {
	data, err := os.ReadFile(deploy + path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(data, into), path)
}

// configured holds a configuration against its schema.
func configured(t *testing.T, where, text string) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/edge-infer.schema.json")
	require.NoError(t, err)
	document, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err, where)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(document)))
	require.NoError(t, err, where)
	assert.NoError(t, schema.Validate(value), where)
}

// What the examples tell the daemon is understood.
func TestExamplesOfDeploymentsAreConfigurations(t *testing.T) {
	text, err := os.ReadFile(deploy + "compose/edge-infer.yaml")
	require.NoError(t, err)
	configured(t, "compose", string(text))

	var userData struct {
		WriteFiles []struct{ Path, Content string } `yaml:"write_files"`
	}
	unmarshal(t, "cloud-init/user-data.yaml", &userData)
	require.Len(t, userData.WriteFiles, 1)
	configured(t, "cloud-init", userData.WriteFiles[0].Content)

	var inventory struct {
		Group struct {
			Hosts map[string]struct {
				Config map[string]any `yaml:"edge_infer_config"`
			}
		} `yaml:"edge_infer"`
	}
	unmarshal(t, "ansible/inventory.example.yml", &inventory)
	require.Len(t, inventory.Group.Hosts, 1)
	for name, host := range inventory.Group.Hosts {
		text, err := yaml.Marshal(host.Config)
		require.NoError(t, err)
		configured(t, name, string(text))
	}
}

// Every file that compose mounts is there, and every port is open on this machine only.
func TestComposeMountsWhatThereIs(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Volumes, Secrets, Ports []string
			Build                   struct{ Context, Dockerfile string }
		}
		Secrets, Volumes map[string]any
	}
	unmarshal(t, "compose/compose.yaml", &compose)
	require.NotEmpty(t, compose.Services)
	for name, service := range compose.Services {
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if !strings.HasPrefix(source, ".") {
				assert.Contains(t, compose.Volumes, source, name)
				continue
			}
			_, err := os.Stat(filepath.Join(deploy, "compose", source))
			assert.NoError(t, err, name)
		}
		for _, secret := range service.Secrets {
			assert.Contains(t, compose.Secrets, secret, name)
		}
		for _, port := range service.Ports {
			assert.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s: %s", name, port)
		}
		if service.Build.Dockerfile != "" {
			assert.FileExists(t, filepath.Join(deploy, "compose", service.Build.Context, service.Build.Dockerfile))
		}
	}
}
