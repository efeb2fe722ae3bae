package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"assay/pkg/phrase"
	"assay/pkg/verdict"
)

type junitSuites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Suites   []junitSuite
}

type junitSuite struct {
	XMLName   xml.Name    `xml:"testsuite"`
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr,omitempty"`
	Cases     []junitCase `xml:"testcase"`
	SystemOut string      `xml:"system-out,omitempty"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	Class     string        `xml:"classname,attr"`
	Time      string        `xml:"time,attr"`
	Failure   *junitProblem `xml:"failure"`
	Error     *junitProblem `xml:"error"`
	Skipped   *junitSkipped `xml:"skipped"`
	SystemOut string        `xml:"system-out,omitempty"`
}

type junitProblem struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// JUnit writes the run as JUnit XML, one test case a job: FAIL is a failure,
// SKIP is skipped, PASS is neither, and everything else (ERROR, NO_METRIC, a job
// that has not ended) is an error. Measurements and warnings are in system-out.
// Control characters, which XML cannot hold, are written as escapes like \x1b.
func JUnit(w io.Writer, run Run) error {
	suite := junitSuite{Name: phrase.Line(run.RunID), Tests: len(run.Jobs), SystemOut: phrase.Clean(strings.Join(caveats(run), "\n"))}
	if !run.StartedAt.IsZero() {
		suite.Timestamp = run.StartedAt.UTC().Format("2006-01-02T15:04:05")
	}
	total := 0.0
	names := labels(run)
	for i, j := range run.Jobs {
		c := testCase(names[i], "assay."+run.Target, j)
		total += j.ElapsedSeconds
		switch {
		case c.Failure != nil:
			suite.Failures++
		case c.Error != nil:
			suite.Errors++
		case c.Skipped != nil:
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Time = seconds(total)
	doc := junitSuites{
		Name: "assay", Tests: suite.Tests, Failures: suite.Failures,
		Errors: suite.Errors, Skipped: suite.Skipped, Suites: []junitSuite{suite},
	}
	text, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

func testCase(name, class string, j Job) junitCase {
	c := junitCase{Name: phrase.Line(name), Class: phrase.Line(class), Time: seconds(j.ElapsedSeconds), SystemOut: systemOut(j)}
	problem := &junitProblem{
		Type: j.Verdict.String(), Message: phrase.Line(firstReason(j)),
		Text: phrase.Clean(strings.Join(group(j.Reasons, 0), "\n")),
	}
	switch j.Verdict {
	case verdict.Pass:
	case verdict.Fail:
		c.Failure = problem
	case verdict.Skip:
		c.Skipped = &junitSkipped{Message: problem.Message}
	default:
		c.Error = problem
	}
	return c
}

func systemOut(j Job) string {
	var lines []string
	for _, m := range j.Measurements {
		lines = append(lines, measurement(m))
	}
	for _, w := range j.Warnings {
		lines = append(lines, "warning: "+w.Message)
	}
	lines = append(lines, attempts(j)...)
	return phrase.Clean(strings.Join(lines, "\n"))
}

// firstReason is the sentence that stands for a verdict.
func firstReason(j Job) string {
	if len(j.Reasons) > 0 {
		return j.Reasons[0].Message
	}
	if j.Verdict == verdict.Pending {
		return "the job has not ended"
	}
	return ""
}

func seconds(v float64) string { return fmt.Sprintf("%.3f", v) }
