"""Console: a page for operators, which shows what people see beside what became true. It lives in `static/console`."""
