package pod_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/evidence"
	"assay/pkg/pod"
)

func identity() evidence.Identity { return exampleEnd().Identity }

func file(name, text string) pod.File {
	return pod.File{Name: name, Size: int64(len(text)), Data: strings.NewReader(text)}
}

func filesOf(content map[string]string) []pod.File {
	var out []pod.File
	for name, text := range content {
		out = append(out, file(name, text))
	}
	return out
}

// stamped is a log as the kubelet gives it: each line with its time.
type stamped struct {
	at   time.Time
	text string // with its end
}

// stamp gives the lines of an output their times.
func stamp(output string, gap func() time.Duration) []stamped {
	at := time.Date(2026, 1, 2, 3, 4, 5, 999_000_000, time.UTC)
	var out []stamped
	for _, line := range strings.SplitAfter(output, "\n") {
		if line != "" {
			out = append(out, stamped{at, at.Format(time.RFC3339Nano) + " " + line})
			at = at.Add(gap())
		}
	}
	return out
}

func text(lines []stamped) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
	}
	return b.String()
}

// from is what a connection gives that begins there.
func from(lines []stamped, since string) string {
	begin, _ := time.Parse(time.RFC3339, since)
	var b strings.Builder
	for _, l := range lines {
		if !l.at.Before(begin) {
			b.WriteString(l.text)
		}
	}
	return b.String()
}

// feed gives a reader one connection in chunks.
func feed(t *rapid.T, r *pod.LogReader, log string) (since string) {
	r.Resume()
	for len(log) > 0 {
		n := min(rapid.SampledFrom([]int{7, 5000, 70000, 1 << 20}).Draw(t, "chunk")*max(len(log)/200_000, 1), len(log))
		since = r.Line([]byte(log[:n]))
		log = log[n:]
	}
	return since
}

// words are what workloads print.
func words() *rapid.Generator[string] {
	id := identity()
	forged := fmt.Sprintf("assay-record/1 %s 3 other ", id.Nonce[:8])
	return rapid.SampledFrom([]string{
		"a", "\n", "\n", "performance: 1 GBs\n", "half a line", "\r\n", "\x00\xff", strings.Repeat("long", 20000),
		forged + "- begin 0 {}\n", forged + "+ piece 0 AAAA\n", forged + `- end 1 {"pieces":1,"bytes":3,"sha256":""}` + "\n",
		"assay-record/1 \n", fmt.Sprintf("assay-record/1 %s 3 ", id.Nonce[:8]), "2026-01-02T03:04:05Z words\n",
	})
}

// session is the output of a pod: words, the begin record, words, the archive.
func session(t *rapid.T, content map[string]string) (output, said string) {
	var raw, workload bytes.Buffer
	c := pod.NewConsole(&raw)
	id := identity()
	s := pod.NewSender(c, id, "0123456789abcdef")
	if err := s.Begin(evidence.Begin{Version: 1, Identity: id, Host: "h", StartedAt: time.Unix(0, 0).UTC()}); err != nil {
		t.Fatal(err)
	}
	for _, w := range rapid.SliceOfN(words(), 0, 30).Draw(t, "words") {
		workload.WriteString(w)
		if _, err := c.Write([]byte(w)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Archive(filesOf(content), nil); err != nil {
		t.Fatal(err)
	}
	return raw.String(), workload.String()
}

func contentOf(t *rapid.T) map[string]string {
	random := rapid.Custom(func(t *rapid.T) string { // does not compress
		seed := rapid.Uint64().Draw(t, "seed")
		var b strings.Builder
		for range rapid.SampledFrom([]int{0, 1, 100, 2000}).Draw(t, "blocks") {
			sum := sha256.Sum256([]byte(fmt.Sprint(seed, b.Len())))
			b.Write(sum[:])
		}
		return b.String()
	})
	content := map[string]string{"end.json": "{}", "begin.json": "{}\n", "results/a/b.csv": random.Draw(t, "results"), "stdout": random.Draw(t, "stdout")}
	if rapid.Bool().Draw(t, "metrics") {
		content["metrics.json"] = random.Draw(t, "metrics.json")
	}
	return content
}

func asText(files map[string][]byte) map[string]string {
	out := map[string]string{}
	for name, data := range files {
		out[name] = string(data)
	}
	return out
}

// Whatever the workload prints and however the log comes, with breaks between: the
// words pass unchanged, each once, and the files are those of the rank.
func TestLogArrivesWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := contentOf(t)
		output, said := session(t, content)
		lines := stamp(output, func() time.Duration {
			return rapid.SampledFrom([]time.Duration{0, 1, time.Millisecond, 1100 * time.Millisecond}).Draw(t, "gap")
		})
		var out bytes.Buffer
		r := pod.NewLogReader(&out, identity().Nonce, 3)
		since := ""
		for range rapid.IntRange(0, 3).Draw(t, "breaks") {
			log := from(lines, since)
			if next := feed(t, r, log[:rapid.IntRange(0, len(log)).Draw(t, "break")]); next != "" {
				since = next
			}
		}
		feed(t, r, from(lines, since))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != said {
			t.Fatalf("passed on %.300q … (%d bytes)\nwant %.300q … (%d bytes)", out.String(), out.Len(), said, len(said))
		}
		files, omitted, err := r.Archive()
		if err != nil || !r.Complete() || !r.Begun() || len(omitted) > 0 {
			t.Fatalf("%v, complete %v, begun %v, omitted %v", err, r.Complete(), r.Begun(), omitted)
		}
		if d := cmp.Diff(content, asText(files)); d != "" {
			t.Fatalf("files (-want +got):\n%.2000s", d)
		}
		var b evidence.Begin
		if err := json.Unmarshal(r.Begin(), &b); err != nil || b.Identity != identity() {
			t.Fatalf("begin %s, %v", r.Begin(), err)
		}
	})
}

// Whatever is cut out of the log, the files are those of the rank, or it is said
// that they are not there.
func TestLogTruncated(t *testing.T) {
	named := 0
	rapid.Check(t, func(t *rapid.T) {
		content := contentOf(t)
		output, _ := session(t, content)
		log := text(stamp(output, func() time.Duration { return time.Microsecond }))
		for range rapid.IntRange(1, 3).Draw(t, "cuts") {
			from := rapid.IntRange(0, len(log)).Draw(t, "from")
			to := min(from+rapid.SampledFrom([]int{1, 3, 4, 100, 5000, 1 << 20}).Draw(t, "length"), len(log))
			log = log[:from] + log[to:]
		}
		r := pod.NewLogReader(io.Discard, identity().Nonce, 3)
		feed(t, r, log)
		_ = r.Close()
		files, _, err := r.Archive()
		if err != nil {
			named++
			return
		}
		if d := cmp.Diff(content, asText(files)); d != "" {
			t.Fatalf("wrong files (-want +got):\n%.2000s", d)
		}
	})
	if named == 0 {
		t.Error("no cut did any harm: the test tests nothing")
	}
}

// A log that lacks its beginning still has the files.
func TestLogWithoutBeginning(t *testing.T) {
	var raw bytes.Buffer
	c := pod.NewConsole(&raw)
	s := pod.NewSender(c, identity(), "p")
	_ = s.Begin(evidence.Begin{Identity: identity()})
	_, _ = c.Write([]byte("gone\nwords"))
	if err := s.Archive([]pod.File{file("stdout", "gone\nwords")}, []pod.Omitted{{Name: "results/fifo", Why: "is no file"}}); err != nil {
		t.Fatal(err)
	}
	lines := stamp(raw.String(), func() time.Duration { return 1 })[2:]
	var out bytes.Buffer
	r := pod.NewLogReader(&out, identity().Nonce, 3)
	r.Resume()
	r.Line([]byte(text(lines)))
	files, omitted, err := r.Archive()
	if err != nil || string(files["stdout"]) != "gone\nwords" || r.Begin() != nil || !r.Begun() {
		t.Errorf("%v, %v, begin %q", files, err, r.Begin())
	}
	if d := cmp.Diff([]pod.Omitted{{Name: "results/fifo", Why: "is no file"}}, omitted); d != "" {
		t.Error(d)
	}
	if err := errors.Join(r.Close()); err != nil || out.String() != "words" {
		t.Errorf("passed on %q, %v", out.String(), err)
	}
}

// What is lost has a name.
func TestArchiveSaysWhyThereIsNone(t *testing.T) {
	var raw bytes.Buffer
	c := pod.NewConsole(&raw)
	s := pod.NewSender(c, identity(), "p")
	_ = s.Begin(evidence.Begin{Identity: identity()})
	noise := make([]byte, 0, 20000)
	for i := range 625 {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		noise = append(noise, sum[:]...)
	}
	if err := s.Archive([]pod.File{file("stdout", string(noise))}, nil); err != nil {
		t.Fatal(err)
	}
	lines := stamp(raw.String(), func() time.Duration { return 1 })
	n := len(lines)
	damaged := append([]stamped{}, lines...)
	damaged[1].text = strings.Replace(damaged[1].text, "piece 0 H4s", "piece 0 I4s", 1)
	for name, tt := range map[string]struct {
		lines []stamped
		want  string
	}{
		"nothing":  {nil, "has no records of the rank"},
		"begin":    {lines[:1], "ends before the rank sent its files"},
		"two":      {lines[:3], "breaks off after 2 pieces"},
		"hole":     {append(append([]stamped{}, lines[:2]...), lines[4:]...), fmt.Sprintf("lacks 2 of %d pieces", n-2)},
		"end only": {lines[n-1:], fmt.Sprintf("lacks %d of %d pieces", n-2, n-2)},
		"damaged":  {damaged, "checksum"},
	} {
		r := pod.NewLogReader(io.Discard, identity().Nonce, 3)
		r.Resume()
		r.Line([]byte(text(tt.lines)))
		if _, _, err := r.Archive(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
	for name, r := range map[string]*pod.LogReader{"of another run": pod.NewLogReader(io.Discard, "b2b2b2b2", 3), "of another rank": pod.NewLogReader(io.Discard, identity().Nonce, 2)} {
		r.Line([]byte(text(lines)))
		if _, _, err := r.Archive(); err == nil || r.Begun() {
			t.Errorf("the reader %s took them", name)
		}
	}
}

// Files that cannot be read, and outputs that cannot be written, are no archive.
func TestSenderFailures(t *testing.T) {
	var raw bytes.Buffer
	s := pod.NewSender(pod.NewConsole(&raw), identity(), "p")
	shrunk := pod.File{Name: "results/x", Size: 10, Data: strings.NewReader("four")}
	if err := s.Archive([]pod.File{shrunk}, nil); err == nil {
		t.Error("a file that has become shorter was sent")
	}
	r := pod.NewLogReader(io.Discard, identity().Nonce, 3)
	r.Line([]byte(text(stamp(raw.String(), func() time.Duration { return 1 }))))
	if _, _, err := r.Archive(); err == nil || !strings.Contains(err.Error(), "could not send its files: results/x") || !r.Complete() {
		t.Errorf("error %v", err)
	}
	pr, pw := io.Pipe()
	_ = pr.CloseWithError(errors.New("nobody there"))
	s = pod.NewSender(pod.NewConsole(pw), identity(), "p")
	if err := s.Archive([]pod.File{file("stdout", "x")}, nil); err == nil || !strings.Contains(err.Error(), "nobody there") {
		t.Errorf("error %v", err)
	}
}

// What does not fit is named; results come before logs, and logs keep their ends.
func TestArchiveLimit(t *testing.T) {
	big := strings.Repeat("0123456789abcde\n", pod.MaxArchive/16*5/8)
	many := []pod.File{
		file("stdout", "first\n"+big+"last\n"), file("stderr", "short"), file("assay.log", "log"), file("end.json", "{}"),
		file("results/a", big), file("results/b", big), file("results/../x", "no"), file("results/\xff", "no"), file("work/y", "no"), file("/etc/passwd", "no"),
	}
	var raw bytes.Buffer
	if err := pod.NewSender(pod.NewConsole(&raw), identity(), "p").Archive(many, nil); err != nil {
		t.Fatal(err)
	}
	r := pod.NewLogReader(io.Discard, identity().Nonce, 3)
	r.Line([]byte(text(stamp(raw.String(), func() time.Duration { return 1 }))))
	files, omitted, err := r.Archive()
	if err != nil {
		t.Fatal(err)
	}
	why := map[string]string{}
	for _, o := range omitted {
		why[o.Name] = o.Why
	}
	alien := "its name is none that an archive can hold"
	want := map[string]string{
		"results/../x": alien, "results/\ufffd": alien, "work/y": alien, "/etc/passwd": alien,
		"results/b": "an archive holds 16 MiB", "stdout": "only its beginning and its end fit",
	}
	if d := cmp.Diff(want, why); d != "" {
		t.Errorf("omitted (-want +got):\n%s", d)
	}
	out := string(files["stdout"])
	if len(files) != 5 || string(files["results/a"]) != big || string(files["stderr"]) != "short" ||
		!strings.HasPrefix(out, "first\n") || !strings.HasSuffix(out, "last\n") || !strings.Contains(out, "bytes cut here]\n") {
		t.Errorf("%d files; stdout %.50q … %q", len(files), out, out[max(0, len(out)-20):])
	}
	total := 0
	for _, data := range files {
		total += len(data)
	}
	if total > pod.MaxArchive || total < pod.MaxArchive-1000 {
		t.Errorf("%d bytes of at most %d", total, pod.MaxArchive)
	}
}

// What no rank sends is refused, whoever sent it.
func TestArchiveOfAStranger(t *testing.T) {
	for name, h := range map[string]tar.Header{
		"a path out":        {Typeflag: tar.TypeReg, Name: "results/../../x"},
		"an absolute path":  {Typeflag: tar.TypeReg, Name: "/etc/passwd"},
		"another file":      {Typeflag: tar.TypeReg, Name: "verdict.json"},
		"a link":            {Typeflag: tar.TypeSymlink, Name: "stdout", Linkname: "/etc/passwd"},
		"a directory":       {Typeflag: tar.TypeDir, Name: "results/x"},
		"too much":          {Typeflag: tar.TypeReg, Name: "stdout", Size: 1 << 40},
		"the same twice":    {Typeflag: tar.TypeReg, Name: "end.json"},
		"less than it says": {Typeflag: tar.TypeReg, Name: "stdout", Size: 10},
	} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "end.json"})
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_ = z.Close()
		sum := sha256.Sum256(b.Bytes())
		head := fmt.Sprintf("assay-record/1 %s 3 p - ", identity().Nonce[:8])
		log := head + "piece 0 " + base64.StdEncoding.EncodeToString(b.Bytes()) + "\n" +
			head + fmt.Sprintf(`end 1 {"pieces":1,"bytes":%d,"sha256":%q}`, b.Len(), hex.EncodeToString(sum[:])) + "\n"
		r := pod.NewLogReader(io.Discard, identity().Nonce, 3)
		r.Line([]byte(text(stamp(log, func() time.Duration { return 1 }))))
		if files, _, err := r.Archive(); err == nil {
			t.Errorf("%s was taken: %v", name, files)
		}
	}
}

func BenchmarkLogReader(b *testing.B) {
	log := []byte(text(stamp(strings.Repeat("step 100 loss 0.123 lr=0.1\n", 10000), func() time.Duration { return time.Microsecond })))
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		r := pod.NewLogReader(io.Discard, identity().Nonce, 3)
		r.Resume()
		r.Line(log)
	}
}

// A long line that broke is told from a whole one of the same moment that begins alike.
func TestLogBrokenTwin(t *testing.T) {
	const stampText = "2026-01-02T03:04:05.999Z "
	long := strings.Repeat("long", 20000)
	log := stampText + long + "\n" + stampText + long + "other\n"
	var out bytes.Buffer
	r := pod.NewLogReader(&out, identity().Nonce, 3)
	r.Resume()
	r.Line([]byte(log[:len(log)-10000]))
	r.Resume()
	r.Line([]byte(log[:len(log)-9000]))
	r.Resume()
	r.Line([]byte(log))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if want := long + "\n" + long + "other"; strings.TrimSuffix(out.String(), "\n") != want {
		t.Fatalf("passed on %d bytes, want %d", out.Len(), len(want))
	}
}
