# The studio and the command line in one image. It keeps its project in /data, runs as nobody in particular, and asks for a password
# because it is served beyond its own machine (docs/studio.md#in-a-container).
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir --prefix=/install ".[studio,stats,large,postgres]"

FROM python:3.12-slim
COPY --from=build /install /usr/local
RUN useradd --create-home --uid 10001 shoal && mkdir /data && chown shoal /data
USER shoal
WORKDIR /data
VOLUME /data
EXPOSE 8700
HEALTHCHECK --interval=30s --timeout=5s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8700/health', timeout=3)"]
ENTRYPOINT ["shoal"]
CMD ["studio", "--no-browser", "--folder", "/data", "--listen", "0.0.0.0", "--port", "8700"]
