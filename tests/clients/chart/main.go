// Renders a Helm chart as `helm template` does, decodes each manifest strictly into its Go type, and prints the
// manifests as JSON. Arguments: the chart's directory, and its values as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A kind without a type here, such as that of a custom resource, is only parsed.
var types = map[string]func() any{
	"Deployment":          func() any { return &apps.Deployment{} },
	"PodDisruptionBudget": func() any { return &policy.PodDisruptionBudget{} },
	"Service":             func() any { return &core.Service{} },
	"StatefulSet":         func() any { return &apps.StatefulSet{} },
}

func main() {
	manifests := []string{}
	if strings.HasSuffix(os.Args[1], ".yaml") {
		text, err := os.ReadFile(os.Args[1])
		check(err)
		manifests = append(manifests, string(text))
	} else {
		chart, err := loader.Load(os.Args[1])
		check(err)
		check(chart.Validate())
		values := map[string]any{}
		check(json.Unmarshal([]byte(os.Args[2]), &values))
		release := chartutil.ReleaseOptions{Name: "news", Namespace: "search", IsInstall: true}
		full, err := chartutil.ToRenderValues(chart, values, release, nil)
		check(err)
		rendered, err := engine.Engine{Strict: true}.Render(chart, full)
		check(err)
		for path, text := range rendered {
			if strings.HasSuffix(path, ".yaml") {
				manifests = append(manifests, text)
			}
		}
		sort.Strings(manifests)
	}
	found := []any{}
	for _, text := range manifests {
		for _, part := range strings.Split(text, "\n---\n") {
			var plain map[string]any
			check(yaml.UnmarshalStrict([]byte(part), &plain))
			kind := fmt.Sprint(plain["kind"])
			if typed, known := types[kind]; known {
				if err := yaml.UnmarshalStrict([]byte(part), typed()); err != nil {
					check(fmt.Errorf("%s: %w", kind, err))
				}
			}
			found = append(found, plain)
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(found))
}
