package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"time"
)

//go:embed static
var static embed.FS

type file struct {
	data     []byte
	mimeType string
	etag     string
}

// mimeTypes has the MIME types of the embedded files, by extension. Package mime would use the tables of the host.
var mimeTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
	".LICENSE": "text/plain; charset=utf-8",
}

func embeddedFiles() map[string]file {
	files := make(map[string]file)
	entries, _ := static.ReadDir("static") // reads of embedded files cannot fail
	for _, e := range entries {
		data, _ := static.ReadFile("static/" + e.Name())
		sum := sha256.Sum256(data)
		files[e.Name()] = file{data, mimeTypes[path.Ext(e.Name())], `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	return files
}

func (p *Page) index(w http.ResponseWriter, r *http.Request) { p.serve(w, r, "index.html") }

func (p *Page) asset(w http.ResponseWriter, r *http.Request) { p.serve(w, r, r.PathValue("name")) }

// serve responds with an embedded file. The browser may cache the file, but must revalidate it before each use.
func (p *Page) serve(w http.ResponseWriter, r *http.Request, name string) {
	f, ok := p.files[name]
	if !ok {
		writeError(w, http.StatusNotFound, "there is no such file: load the page again")
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.mimeType)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.etag)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(f.data))
}
