// Renders a chart as Helm does, for tests: render CHART RELEASE NAMESPACE [VALUES].
//
// Helm is no package of Debian's, and its template language is: Go's
// text/template with the functions of sprig.  What Helm adds to them and the
// chart uses stands below; a chart that uses anything else fails here, as does
// one that reads a value that is not there.  Values are merged as Helm does it:
// maps with maps, null removes, and numbers are floats.  NOTES.txt comes last,
// behind a line of its own.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

const notes = "NOTES.txt"

type values = map[string]interface{}

// files is what .Files is to a template.
type files string

// Get returns a file of the chart.  Helm returns nothing where there is none,
// which no chart means.
func (f files) Get(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(string(f), name))
	return string(text), err
}

// plain makes of YAML what JSON would be in memory, as Helm sees it.
func plain(text []byte) (values, error) {
	var any interface{}
	if err := yaml.Unmarshal(text, &any); err != nil {
		return nil, err
	}
	if any == nil {
		return values{}, nil
	}
	bytes, err := json.Marshal(any)
	if err != nil {
		return nil, err
	}
	var got values
	return got, json.Unmarshal(bytes, &got)
}

func read(path string) (values, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	got, err := plain(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return got, nil
}

func merge(into, from values) {
	for key, value := range from {
		old, isMap := into[key].(values)
		new, isToo := value.(values)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && isToo:
			merge(old, new)
		default:
			into[key] = value
		}
	}
}

// whole turns floats into the integers that they are, as JSON would write them.
func whole(value interface{}) interface{} {
	switch v := value.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case values:
		made := values{}
		for key, inner := range v {
			made[key] = whole(inner)
		}
		return made
	case []interface{}:
		made := make([]interface{}, len(v))
		for i, inner := range v {
			made[i] = whole(inner)
		}
		return made
	}
	return value
}

func toYaml(value interface{}) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := encoder.Encode(whole(value))
	return strings.TrimSuffix(out.String(), "\n"), err
}

func functions(all *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	delete(known, "env") // Helm has none of these two
	delete(known, "expandenv")
	known["toYaml"] = toYaml
	known["fromYaml"] = func(text string) (values, error) {
		return plain([]byte(text))
	}
	known["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	known["required"] = func(what string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(what)
		}
		return value, nil
	}
	return known
}

func load(chart string) (*template.Template, []string, error) {
	all := template.New("llmgw").Option("missingkey=error")
	all.Funcs(functions(all))
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return nil, nil, err
	}
	var rendered []string
	sort.Strings(paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		name := filepath.Base(path)
		if _, err := all.New(name).Parse(string(text)); err != nil {
			return nil, nil, err
		}
		if !strings.HasPrefix(name, "_") && name != notes {
			rendered = append(rendered, name)
		}
	}
	return all, append(rendered, notes), nil
}

func render(chart, release, namespace, given string) error {
	about, err := read(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return err
	}
	all, names, err := load(chart)
	if err != nil {
		return err
	}
	merged, err := read(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	if given != "" {
		more, err := read(given)
		if err != nil {
			return err
		}
		merge(merged, more)
	}
	top := values{
		"Values": merged,
		"Chart": values{"Name": about["name"], "Version": about["version"],
			"AppVersion": about["appVersion"]},
		"Release": values{"Name": release, "Namespace": namespace,
			"Service": "Helm"},
		"Files": files(chart),
	}
	for _, name := range names {
		var out strings.Builder
		if err := all.ExecuteTemplate(&out, name, top); err != nil {
			return err
		}
		if name == notes {
			fmt.Println("--- # " + notes)
		} else if strings.TrimSpace(out.String()) == "" {
			continue
		} else if !strings.HasPrefix(strings.TrimSpace(out.String()), "---") {
			fmt.Println("---")
		}
		fmt.Println(strings.Trim(out.String(), "\n"))
	}
	return nil
}

func main() {
	given := ""
	if len(os.Args) == 5 {
		given = os.Args[4]
	} else if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: render CHART RELEASE NAMESPACE [VALUES]")
		os.Exit(2)
	}
	if err := render(os.Args[1], os.Args[2], os.Args[3], given); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}
