// Feeds articles through the official client for Go; prints the results as JSON.
//
// Usage: clients URL INDEX FILE, where each line of FILE is an article as JSON.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/elastic/go-elasticsearch/v8/esutil"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// answered closes a response and returns its status code.
func answered(answer *esapi.Response, err error) int {
	check(err)
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	check(err)
	return answer.StatusCode
}

func main() {
	address, index, file := os.Args[1], os.Args[2], os.Args[3]
	es, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{address}, CompressRequestBody: true})
	check(err)
	got := map[string]interface{}{"version": elasticsearch.Version}

	bulk, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{Client: es, Index: index, NumWorkers: 1, FlushBytes: 100_000})
	check(err)
	var failed int64
	onFailure := func(context.Context, esutil.BulkIndexerItem, esutil.BulkIndexerResponseItem, error) {
		atomic.AddInt64(&failed, 1)
	}
	add := func(action, id string, article []byte) {
		check(bulk.Add(context.Background(), esutil.BulkIndexerItem{
			Action: action, DocumentID: id, Body: bytes.NewReader(article), OnFailure: onFailure,
		}))
	}
	articles, err := os.Open(file)
	check(err)
	defer articles.Close()
	lines := bufio.NewScanner(articles)
	lines.Buffer(nil, 1<<20)
	var first []byte
	var id struct {
		ID string `json:"id"`
	}
	for lines.Scan() {
		article := append([]byte(nil), lines.Bytes()...)
		if first == nil {
			first = article
		}
		check(json.Unmarshal(article, &id))
		add("index", id.ID, article)
	}
	check(lines.Err())
	// This article already exists.
	add("create", id.ID, first)
	check(bulk.Close(context.Background()))
	stats := bulk.Stats()
	got["bulk"] = map[string]interface{}{"flushed": stats.NumFlushed, "failed": failed}

	got["refresh"] = answered(es.Indices.Refresh(es.Indices.Refresh.WithIndex(index)))
	search, err := es.Search(es.Search.WithIndex(index), es.Search.WithBody(strings.NewReader(`{"size":0,"track_total_hits":true}`)))
	check(err)
	defer search.Body.Close()
	var found struct {
		Hits struct {
			Total struct {
				Value int `json:"value"`
			} `json:"total"`
		} `json:"hits"`
	}
	check(json.NewDecoder(search.Body).Decode(&found))
	got["found"] = found.Hits.Total.Value
	got["product"] = search.Header.Get("X-Elastic-Product")
	oddID := url.PathEscape("a/b c%")
	got["odd_id"] = []int{
		answered(es.Index(index, bytes.NewReader(first), es.Index.WithDocumentID(oddID))),
		answered(es.Get(index, oddID)),
		answered(es.Delete(index, oddID)),
	}
	got["errors"] = map[string]int{
		"missing":  answered(es.Get(index, "missing")),
		"conflict": answered(es.Create(index, id.ID, bytes.NewReader(first))),
		"invalid":  answered(es.Search(es.Search.WithIndex(index), es.Search.WithBody(strings.NewReader(`{"query":{"none":{}}}`)))),
	}
	got["exists"] = []int{
		answered(es.Indices.Exists([]string{index})),
		answered(es.Indices.Exists([]string{index + "-missing"})),
	}
	check(json.NewEncoder(os.Stdout).Encode(got))
}
