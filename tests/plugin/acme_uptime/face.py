def render(report):
    found = [result.code for result in report.results if result.outcome == "fail"]
    return " ".join([report.status, *found]) + "\n"
